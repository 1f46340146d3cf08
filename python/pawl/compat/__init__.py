"""Modules with the names and the behaviour of other libraries' matchers, for moving over:
pawl.compat.xgrammar and pawl.compat.llguidance."""
