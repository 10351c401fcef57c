"""A scene, or two side by side, as one HTML file that any browser opens from disk."""

from hccl_py.trace.page.html import check_page, page_bytes, write_page

__all__ = ["check_page", "page_bytes", "write_page"]
