"""Configuration of Sphinx. It runs on what `docs.site.stage` laid out, never on docs/ itself."""

import warnings
from importlib.metadata import version as version_of

# Libraries that are only looked at for their options.
warnings.filterwarnings("ignore", category=DeprecationWarning)

project = "Causeway"
author = "the Causeway developers"
version = release = version_of("causeway")
root_doc = "docs/README"
extensions = ["myst_parser", "oslo_config.sphinxext", "oslo_policy.sphinxext", "sphinx_click"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Anchors of headings are those that code hosts make.
myst_heading_anchors = 6

html_theme = "furo"
html_title = "Causeway"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e99", "color-brand-content": "#0b6e99"},
    "dark_css_variables": {"color-brand-primary": "#5cb8de", "color-brand-content": "#5cb8de"},
}
html_static_path: list[str] = []
pygments_style = "friendly"
linkcheck_timeout = 10
