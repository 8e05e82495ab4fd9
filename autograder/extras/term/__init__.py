"""Pages about the whole term, and certificates: the command ``python -m autograder term``."""

from pathlib import Path

from ...command_line import DB, Misuse, command, option


@command(
    "term",
    DB,
    option("--sign", metavar="KEY", type=Path, help="write certificates, too, signed with this SSH key"),
    option("--check", metavar="FILE", type=Path, help="only check a certificate, and show what it says"),
    option("--signers", metavar="FILE", type=Path, help="with --check: public keys that may have signed it"),
)
def main(db: str | None, sign: Path | None, check: Path | None, signers: Path | None) -> None:
    from .certificates import checked, write_certificates
    from .term_pages import read_term, write_pages

    if bool(check) != bool(signers):
        raise Misuse("--check and --signers need each other")
    if check and signers:
        print(checked(check, signers), end="")
        return
    term, root = read_term(db)
    page = write_pages(term, root / "reports")
    print(f"{page}, and a page for each of {len(term.names)} students in {page.parent / 'students'}")
    if sign:
        folder = root / "reports" / "certificates"
        print(f"{write_certificates(term, folder, sign)} certificates in {folder}")
