# The libraries of the system in place of packages: scripts/install_deps.sh installs them on Debian and Ubuntu.
include(default)

[platform_requires]
nlohmann_json/3.11.2
