"""The conductor: drives all work on servers, and writes down what computes report."""
