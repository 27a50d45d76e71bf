"""`verify`: everything that proves a release, in parts, resumed and reported."""
