"""What the API and others ask of the super conductor, apart from operations, which are in the journal."""
