"""Programs in notebooks."""

from dataclasses import replace

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType
from hccl_py.program.program import Program


def program() -> Program:
    with Communicator(ranks=3) as comm:
        return comm.plan(OpParam("all_gather", 64, DataType.FP32), "AllGatherComm").program


def test_what_a_program_is_stands_in_a_table() -> None:
    found = program()
    html = found._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == 8
    for name, text in (("op", "all_gather"), ("executor", "AllGatherComm"), ("ranks", "3")):
        assert f"<tr><th>{name}</th><td>{text}</td></tr>" in html
    assert "IN 256" in html
    assert "OUT 768" in html


def test_names_are_escaped() -> None:
    html = replace(program(), executor="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
