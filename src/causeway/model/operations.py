"""Which operations there are that a user asks for and a journal keeps, and what their server's task is meanwhile.

An *operation* is a saga that works on a server (`causeway.sagas`). Its recipe has its name here.
"""

from __future__ import annotations

from causeway.model import server_actions
from causeway.model.exclusion import Work
from causeway.model.states import TaskState

BUILD, DELETE = "build", "delete"
CREATE_IMAGE, CREATE_BACKUP = "create_image", "create_backup"
REBUILD, EVACUATE = "rebuild", "evacuate"
SHELVE, SHELVE_OFFLOAD, UNSHELVE = "shelve", "shelve_offload", "unshelve"
SOFT_DELETE, RESTORE = "soft_delete", "restore"
ATTACH_VOLUME, DETACH_VOLUME = "attach_volume", "detach_volume"
ATTACH_INTERFACE, DETACH_INTERFACE = "attach_interface", "detach_interface"

OF_DEVICES = frozenset({ATTACH_VOLUME, DETACH_VOLUME, ATTACH_INTERFACE, DETACH_INTERFACE})

# Those for which an image's record is made before they are accepted; others may name an image that a server needs.
MAKE_IMAGE = frozenset({CREATE_IMAGE, CREATE_BACKUP, SHELVE})

# Those whose end no other operation of the server waits for: a delete has a resize confirmed on its way, and what devices keep
# from being done is refused.
NOT_WAITED_FOR = OF_DEVICES | {DELETE}

# Short ones, whose steps are in the row of the operation (one statement for each step, where others take two).
SHORT = OF_DEVICES | {BUILD, DELETE}

# recipe -> the task of the server from the request's acceptance on; None: it has none.
TASKS: dict[str, TaskState | None] = {
    "resize": TaskState.RESIZE_PREP,
    "same_cell_confirm": None,
    "cross_cell_confirm": None,
    "same_cell_revert": TaskState.RESIZE_REVERTING,
    "cross_cell_revert": TaskState.RESIZE_REVERTING,
    CREATE_IMAGE: server_actions.CREATE_IMAGE.begins,
    CREATE_BACKUP: server_actions.CREATE_BACKUP.begins,
    REBUILD: server_actions.REBUILD.begins,
    EVACUATE: server_actions.EVACUATE.begins,
    SHELVE: server_actions.SHELVE.begins,
    SHELVE_OFFLOAD: server_actions.SHELVE_OFFLOAD.begins,
    UNSHELVE: server_actions.UNSHELVE.begins,
    SOFT_DELETE: server_actions.SOFT_DELETE.begins,
    RESTORE: server_actions.RESTORE.begins,
    ATTACH_VOLUME: None,
    DETACH_VOLUME: None,
    ATTACH_INTERFACE: None,
    DETACH_INTERFACE: None,
    BUILD: TaskState.SCHEDULING,
    DELETE: TaskState.DELETING,
}

# recipe -> what it is, for the table of what excludes what.
WORK: dict[str, Work] = {
    BUILD: Work.BUILD,
    DELETE: Work.DELETE,
    "resize": Work.MOVE,
    "same_cell_resize": Work.MOVE,
    "cross_cell_resize": Work.MOVE,
    "same_cell_confirm": Work.CONFIRM,
    "cross_cell_confirm": Work.CONFIRM,
    "same_cell_revert": Work.REVERT,
    "cross_cell_revert": Work.REVERT,
    CREATE_IMAGE: Work.IMAGE,
    CREATE_BACKUP: Work.IMAGE,
    REBUILD: Work.REBUILD,
    EVACUATE: Work.EVACUATE,
    SHELVE: Work.SHELVE,
    SHELVE_OFFLOAD: Work.SHELVE,
    UNSHELVE: Work.UNSHELVE,
    SOFT_DELETE: Work.SOFT_DELETE,
    RESTORE: Work.SOFT_DELETE,
    ATTACH_VOLUME: Work.DEVICE,
    DETACH_VOLUME: Work.DEVICE,
    ATTACH_INTERFACE: Work.DEVICE,
    DETACH_INTERFACE: Work.DEVICE,
}

# The names of the actions that ask for them.
ACTIONS = (
    "resize",
    "migrate",
    "confirmResize",
    "revertResize",
    *(
        action.name
        for action in (
            server_actions.CREATE_IMAGE,
            server_actions.CREATE_BACKUP,
            server_actions.REBUILD,
            server_actions.EVACUATE,
            server_actions.SHELVE,
            server_actions.SHELVE_OFFLOAD,
            server_actions.UNSHELVE,
            server_actions.SOFT_DELETE,
            server_actions.RESTORE,
        )
    ),
)
