"""JupyterHub for the course on one machine: two students, an instructor, and nbgrader's exchange.

``start.py`` makes the accounts and folders that this file speaks of, and starts the hub. docs/jupyterhub.md
tells what to change for a class.
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (JupyterHub defines it)

# Only this machine. For more, put TLS in front first.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
# Each server has a domain of its own, such as ada.localhost. Pages of one domain can use each other: one
# that a student makes would reach the server of whoever opens it.
c.JupyterHub.subdomain_host = "http://localhost:8000"

# A password for all students, and one for the instructor: enough for a demonstration, not for a class.
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["HUB_PASSWORD"]
c.SharedPasswordAuthenticator.admin_password = os.environ["HUB_INSTRUCTOR_PASSWORD"]
c.Authenticator.allowed_users = {"ada", "bo"}
c.Authenticator.admin_users = {"instructor"}

# A page on which each student sees the own submissions in the queue of `make watch`. It may read the queue
# because it runs as the instructor.
c.JupyterHub.services = [
    {
        "name": "queue",
        "url": "http://127.0.0.1:8099",
        "command": [sys.executable, str(Path(__file__).resolve().parent / "queue_page.py")],
        "user": "instructor",
        "cwd": "/home/instructor/fast-pytorch",
        "oauth_no_confirm": True,
        "display": False,  # the hub's menu would leave the port 8000 out
    }
]
c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", "access:services!service=queue"]}]

# Each user's server runs as the Unix account of that name, and opens on the course's front page.
c.JupyterHub.spawner_class = "localprocess"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.notebook_dir = "~/fast-pytorch"
c.Spawner.default_url = "/lab/tree/course/index.ipynb"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # seconds; a whole class comes at once
c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": str(Path(__file__).resolve().parent / "settings"),
    "JUPYTER_PREFER_ENV_PATH": "1",
}
