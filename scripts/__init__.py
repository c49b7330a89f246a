"""What developers run in a checkout: set-up, tests, documentation, measurements and training."""
