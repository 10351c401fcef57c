"""Parts that importers of several tools share: ops of calls, defects, places of tasks."""
