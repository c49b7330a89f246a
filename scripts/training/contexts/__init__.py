"""Train the adapter that writes contexts."""
