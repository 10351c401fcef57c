"""From YAML to the plain values that JSON has, for people who write files by hand."""

from __future__ import annotations

from typing import Any

from hccl_py.documents.checks import defect, spell
from hccl_py.documents.kind import FileKind
from hccl_py.errors import FileError, NotSupportedError

__all__ = ["MOST_BYTES", "YAML", "parse_yaml", "pyyaml"]

YAML = (".yaml", ".yml")

MOST_BYTES = 4_000_000
"""What is read in some seconds: a YAML reader that refuses deep nesting is slow."""

_TAGS = ("null", "bool", "int", "float", "str", "seq", "map")


def parse_yaml(data: bytes, kind: FileKind) -> object:
    """Return the value of a YAML document.

    Raises FileError for what is not YAML, keys that appear twice or are no strings, values that
    JSON does not have; NotSupportedError where PyYAML is not installed.
    """
    yaml = pyyaml()
    try:
        return yaml.load(data, _loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1} column {mark.column + 1}" if mark else "$"
        told = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise FileError(f"{place}: the text is not YAML ({told}).", kind.text) from None
    except RecursionError:
        raise defect("", "at most 8 levels of nesting", "hundreds", kind.depth) from None
    except ValueError as error:
        raise FileError(f"$: a value cannot be read ({error}).", kind.digits) from None


def _loader(yaml: Any) -> type:
    """Return a reader of JSON's values only: no dates, sets, binary data or Python objects."""
    known = {f"tag:yaml.org,2002:{name}" for name in _TAGS}

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_constructors = {  # noqa: RUF012
            tag: how
            for tag, how in yaml.SafeLoader.yaml_constructors.items()
            if tag is None or tag in known
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, object]:
            seen: set[object] = set()
            for key, _ in node.value:
                name = self.construct_object(key, deep=True)
                line = f"line {key.start_mark.line + 1}"
                if not isinstance(name, str):
                    raise defect(line, "a string as the key", spell(name), "Write it in quotes.")
                if name in seen:
                    hint = "Keep one of the two: the other would be overlooked."
                    raise defect(line, f"the key {spell(name)} once", "it twice", hint)
                seen.add(name)
            return dict(super().construct_mapping(node, deep))

    return Loader


def pyyaml() -> Any:
    """Return the package; NotSupportedError where it is not installed."""
    try:
        import yaml
    except ImportError:
        raise NotSupportedError(
            "YAML needs PyYAML, which is not installed.",
            "Install hccl-py[yaml], or write the file as JSON.",
        ) from None
    return yaml
