"""The first accounts and the catalog of devcloud."""

import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway import durable
from causeway.devcloud.access.passwords import hash_password
from causeway.devcloud.config import DevcloudConfig
from causeway.devcloud.store import Store
from causeway.devcloud.tables.identity import (
    Assignment,
    Domain,
    Endpoint,
    ImpliedRole,
    Project,
    Region,
    Role,
    Service,
    User,
)
from causeway.devcloud.tables.volume import VolumeType

ROLES = ("admin", "manager", "member", "reader", "service")
IMPLIED = (("admin", "manager"), ("manager", "member"), ("member", "reader"))
PROJECTS = ("admin", "demo", "other", "service")
# user, the project it logs in to, (project, role)...
USERS = (
    ("admin", "admin", (("admin", "admin"), ("demo", "admin"))),
    ("demo", "demo", (("demo", "member"), ("demo", "reader"))),
    ("other", "other", (("other", "member"),)),
    ("causeway", "service", (("service", "service"), ("service", "admin"))),
    # The computes': whoever owns a host has it, so it is no administrator.
    ("causeway-compute", "service", (("service", "service"),)),
    ("neutron", "service", (("service", "service"), ("service", "admin"))),
    ("placement", "service", (("service", "service"), ("service", "admin"))),
)
SERVICES = (
    ("identity", "keystone", "/identity/v3"),
    # Clients such as libcloud look for this name.
    ("compute", "nova", "/compute/v2.1"),
    ("placement", "placement", "/placement"),
    ("image", "glance", "/image"),
    ("network", "neutron", "/network"),
    ("key-manager", "barbican", "/key-manager"),
    ("volumev3", "cinderv3", "/volume/v3/%(project_id)s"),
    ("block-storage", "cinder", "/volume/v3/%(project_id)s"),
)
# What the release before called a service.
_FORMER_NAMES = {"compute": "causeway"}


@dataclass(frozen=True)
class Account:
    username: str
    password: str
    project_name: str
    domain_id: str = "default"

    def __repr__(self) -> str:
        return f"Account({self.username!r} in {self.project_name!r})"


@dataclass(frozen=True)
class Accounts:
    """The accounts, by user name. `auth_url`: of Identity, for users; `internal_auth_url`: for services."""

    auth_url: str
    internal_auth_url: str
    region: str
    users: dict[str, Account]

    def __getitem__(self, username: str) -> Account:
        return self.users[username]


def run(store: Store, config: DevcloudConfig) -> Accounts:
    users, anew = _read_or_make(config.state_dir / "devcloud-accounts.json")
    with store.transaction() as session:
        if session.get(Domain, "default") is None:
            session.add(Domain(id="default", name="Default", description="The default domain"))
            session.flush()
        roles = _make_roles(session)
        projects = _make_projects(session)
        _make_users(session, users, projects, roles, anew=anew)
        _make_catalog(session, config)
        if session.scalars(select(VolumeType)).first() is None:
            session.add(VolumeType(name="__DEFAULT__", description="Default Volume Type"))
            session.add(VolumeType(name="multiattach", extra_specs={"multiattach": "<is> True"}))
    internal = config.internal_url or config.base_url
    return Accounts(f"{config.base_url}/identity/v3", f"{internal}/identity/v3", config.region, users)


def _read_or_make(path: Path) -> tuple[dict[str, Account], bool]:
    """The accounts with their passwords, and whether these are new because the file is missing or torn."""
    known: dict[str, Account] | None = None
    with suppress(durable.Torn):
        known = durable.read(path, _accounts)
    missing = [(name, project) for name, project, _ in USERS if known is None or name not in known]
    # A file of release 0.1.0 lacks the accounts that came later.
    users = (known or {}) | {name: Account(name, secrets.token_urlsafe(18), project) for name, project in missing}
    if missing:
        written = json.dumps({name: asdict(account) for name, account in users.items()}, indent=1)
        durable.write(path, written, mode=0o600)
    return users, known is None


def _accounts(content: bytes) -> dict[str, Account]:
    return {name: Account(**fields) for name, fields in json.loads(content).items()}


def _make_roles(session: Session) -> dict[str, Role]:
    roles = {row.name: row for row in session.scalars(select(Role))}
    for name in ROLES:
        if name not in roles:
            roles[name] = Role(name=name)
            session.add(roles[name])
    session.flush()
    for prior, implied in IMPLIED:
        key = (roles[prior].id, roles[implied].id)
        if session.get(ImpliedRole, key) is None:
            session.add(ImpliedRole(prior_id=key[0], implied_id=key[1]))
    return roles


def _make_projects(session: Session) -> dict[str, Project]:
    projects = {row.name: row for row in session.scalars(select(Project).where(Project.domain_id == "default"))}
    for name in PROJECTS:
        if name not in projects:
            projects[name] = Project(name=name, domain_id="default", parent_id="default")
            session.add(projects[name])
    session.flush()
    return projects


def _make_users(
    session: Session,
    accounts: dict[str, Account],
    projects: dict[str, Project],
    roles: dict[str, Role],
    *,
    anew: bool,
) -> None:
    present = {row.name: row for row in session.scalars(select(User).where(User.domain_id == "default"))}
    for name, _, grants in USERS:
        if name in present:
            if anew:
                present[name].password_hash = hash_password(accounts[name].password)
            continue
        user = User(name=name, domain_id="default", password_hash=hash_password(accounts[name].password))
        session.add(user)
        session.flush()
        for project, role in grants:
            session.add(Assignment(user_id=user.id, project_id=projects[project].id, role_id=roles[role].id))


def _make_catalog(session: Session, config: DevcloudConfig) -> None:
    if session.get(Region, config.region) is None:
        session.add(Region(id=config.region))
        session.flush()
    services = {row.type: row for row in session.scalars(select(Service))}
    for service_type, name, path in SERVICES:
        service = services.get(service_type)
        if service is None:
            service = Service(type=service_type, name=name)
            session.add(service)
            session.flush()
        elif service.name == _FORMER_NAMES.get(service_type):
            service.name = name
        query = select(Endpoint).where(Endpoint.service_id == service.id, Endpoint.region_id == config.region)
        endpoints = {row.interface: row for row in session.scalars(query)}
        for interface in ("public", "internal", "admin"):
            base = config.internal_url if interface == "internal" and config.internal_url else config.base_url
            url = base + path
            if service_type == "compute" and config.compute_url is not None:
                url = config.compute_url
            if interface in endpoints:
                endpoints[interface].url = url
            else:
                row = Endpoint(service_id=service.id, interface=interface, region_id=config.region, url=url)
                session.add(row)
