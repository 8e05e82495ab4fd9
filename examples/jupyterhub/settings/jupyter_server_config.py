"""The servers of all users."""

import os

c = get_config()  # noqa: F821  (Jupyter defines it)

if os.environ["JUPYTERHUB_USER"] != "instructor":
    c.ServerApp.jpserver_extensions = {
        "nbgrader.server_extensions.formgrader": False,
        "nbgrader.server_extensions.course_list": False,
    }
# A login shell would forget the environment in which nbgrader and the course are installed.
c.ServerApp.terminado_settings = {"shell_command": ["/bin/bash"]}
