"""Certificates that a student carries and anybody checks without a server: a text with an SSH signature.

The signature is OpenSSH's (``ssh-keygen -Y``), so that an instructor's key is one that there is already, and
that others know: GitHub and GitLab show everybody's public keys.
"""

import subprocess
import tempfile
from datetime import date
from pathlib import Path
from urllib.parse import quote

from ...class_grading.html_page import render
from ...command_line import CommandError
from ...files import write_whole
from .term_pages import Term

TEMPLATE = Path(__file__).with_name("certificate.txt.j2")
PURPOSE = "fast-pytorch-certificate"  # what the key signs for anything else is no certificate
SIGNATURE = b"-----BEGIN SSH SIGNATURE-----"


def write_certificates(term: Term, folder: Path, key: Path) -> int:
    """Write one for each student with a grade, signed with a private key; how many. Raises CommandError."""
    graded = [one for one in term.names if any(term.graded(results, one) for results in term.assignments)]
    for student in graded:
        text = render(TEMPLATE, term=term, student=student, today=date.today()).encode()
        signature = _ssh_keygen(text, "sign", "-q", "-f", str(key))
        write_whole(folder / f"{quote(student, safe='')}.txt", text + signature)
    return len(graded)


def checked(certificate: Path, signers: Path) -> str:
    """What it says, if one of ``signers`` (public keys, a line each) has signed it. Raises CommandError."""
    text, begin, signature = certificate.read_bytes().rpartition(SIGNATURE)
    with tempfile.TemporaryDirectory() as scratch:
        keys, signed = Path(scratch, "keys"), Path(scratch, "signature")
        known = (f"signer {key}\n" for key in signers.read_text("utf-8").splitlines() if key)
        keys.write_text("".join(known), "utf-8")
        signed.write_bytes(begin + signature)
        _ssh_keygen(text, "verify", "-I", "signer", "-f", str(keys), "-s", str(signed))
    return text.decode()


def _ssh_keygen(text: bytes, what: str, *options: str) -> bytes:
    try:
        command = ["ssh-keygen", "-Y", what, "-n", PURPOSE, *options]
        return subprocess.run(command, input=text, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise CommandError("ssh-keygen is missing. OpenSSH brings it.") from None
    except subprocess.CalledProcessError as error:
        why = (error.stderr or error.stdout).decode(errors="replace").strip()
        said = "It is not signed by any of these keys, or was changed" if what == "verify" else "Not signed"
        raise CommandError(f"{said}: {why}") from None
