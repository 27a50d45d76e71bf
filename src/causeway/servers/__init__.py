"""What steps of many operations do with a server: remove its guest, end its task, and undo what came too late."""
