"""Train the planner of questions about rows."""
