# Sourced by the scripts beside it: sets $python to an interpreter this project runs on, or explains and exits.

rebench_python_fits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1
}

python=""
rebench_seen=""
for rebench_candidate in ${REBENCH_PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if rebench_python_fits "$rebench_candidate"; then
        python=$rebench_candidate
        break
    fi
    if command -v "$rebench_candidate" >/dev/null 2>&1; then
        rebench_seen="$rebench_seen
    $rebench_candidate: $("$rebench_candidate" --version 2>&1 | head -n 1)"
    fi
done

if [ -z "$python" ]; then
    {
        echo "rebench-workbench needs Python 3.11, 3.12 or 3.13, and found none."
        if [ -n "$rebench_seen" ]; then echo "Looked at:$rebench_seen"; fi
        echo "Install one (Debian and Ubuntu: apt install python3 python3-venv) or name one:"
        echo "    REBENCH_PYTHON=/path/to/python3.12 $0"
    } >&2
    exit 3
fi
