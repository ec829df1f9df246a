"""The defaults of each kind of object, by area."""
