"""A conductor dies, is slow or stops: another one takes its operations over."""
