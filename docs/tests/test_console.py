"""Files and commands of a page: they run where it is built, and an exit code that is not expected stops the build."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

FILE = "```{file} mine.py\nimport sys\nprint('one', 'two', sep='\\n')\nsys.exit(len(sys.argv) - 1)\n```\n\n"


def test_a_command_is_shown_with_its_output(build):
    built = build(FILE + "```{console}\npython mine.py\n```")
    assert (built.code, built.said) == (0, "")
    assert text(built.page).endswith("$ python mine.py one two")


def test_what_stands_before_a_text_is_left_out(build):
    built = build(FILE + "```{console}\n:exit: 1\n:from: tw\npython mine.py \\\n  wrong\n```")
    assert text(built.page).endswith("$ python mine.py wrong … two")


@pytest.mark.parametrize(
    ("console", "said"),
    [
        ("python mine.py wrong", "python mine.py wrong ended with exit code 1"),
        (":exit: 1\npython mine.py", "python mine.py ended with exit code 0"),
        ("python nowhere.py", "nowhere.py"),
    ],
)
def test_another_exit_code_stops_the_build(build, console, said):
    built = build(f"{FILE}```{{console}}\n{console}\n```")
    assert built.code == 1
    assert said in built.said


def test_the_help_of_every_command_is_there(build):
    built = build("```{command-line}\n```")
    assert built.code == 0, built.said
    for name in ("run", "list", "show"):
        assert f'<section id="{name}">' in built.page
        assert f"python -m conformance {name} --help" in text(built.page)


def text(page: str) -> str:
    """Give the words of the article, without its markup."""
    words: list[str] = []
    parser = HTMLParser()
    parser.handle_data = words.append
    parser.feed(page.partition('role="main"')[2].partition("</article>")[0])
    return " ".join("".join(words).replace("¶", "").split())
