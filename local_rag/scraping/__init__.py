"""Fetch web pages and keep their main content."""
