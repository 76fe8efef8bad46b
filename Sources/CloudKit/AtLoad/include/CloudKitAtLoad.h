// Nothing to call: what this target does is done before main.
