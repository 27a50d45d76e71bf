"""RPC of the super conductor for the API and others, except operations, which are in the journal."""
