// The module `os` in C: what there is of it is in Swift, which is its overlay.
