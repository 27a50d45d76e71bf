"""The console: the page that operators watch moves on."""
