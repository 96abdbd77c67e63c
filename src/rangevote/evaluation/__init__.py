"""Outputs of systems in; metrics with their significance, tables and plots out."""
