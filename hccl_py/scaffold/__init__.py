"""Projects that `hccl-py new` writes: plugin packages to start from.

Every file of a project is a template in `templates/executor/`, and the executor itself one per op:
`all_gather.py.tmpl` and so on. A new op needs one more of those, and nothing else.
"""

from hccl_py.scaffold.names import Names, names_of
from hccl_py.scaffold.project import executor_project, write_project

__all__ = ["Names", "executor_project", "names_of", "write_project"]
