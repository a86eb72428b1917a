"""C in two threads that have finished when the function returns. Seen: usual work. Expected: valid."""

import ctypes
import subprocess
import tempfile
import threading
from pathlib import Path

SOURCE = r"""
#include <stdint.h>
void summarise(const int32_t *x, int64_t n, uint32_t *odd, uint32_t sums[2])
{
    uint32_t parity = 0, s[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) { s[parity ^ 1] += (uint32_t)x[i]; parity ^= x[i] > 0; }
    *odd = parity; sums[0] = s[0]; sums[1] = s[1];
}
void scan(const int32_t *x, int32_t *y, int64_t n, uint32_t odd, uint32_t sum)
{
    for (int64_t i = 0; i < n; i++) { sum += (uint32_t)x[i] & (0u - odd); y[i] = (int32_t)sum; odd ^= x[i] > 0; }
}
"""
folder = Path(tempfile.mkdtemp())
(folder / "scan.c").write_text(SOURCE)
subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", folder / "scan.so", folder / "scan.c"], check=True)
library = ctypes.CDLL(str(folder / "scan.so"))
P, N, U = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32
library.summarise.argtypes = [P, N, P, P]
library.scan.argtypes = [P, P, N, U, U]


def prefix_sum(x, out):
    half = x.size // 2
    source, target = x.ctypes.data, out.ctypes.data
    odd, sums = U(0), (U * 2)()
    library.summarise(source, half, ctypes.byref(odd), sums)
    first = threading.Thread(target=library.scan, args=(source, target, half, 0, 0))
    first.start()
    library.scan(source + 4 * half, target + 4 * half, x.size - half, odd.value, sums[0])
    first.join()
    return out
