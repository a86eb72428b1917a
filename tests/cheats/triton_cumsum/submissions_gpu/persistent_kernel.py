"""Starts a kernel in the warm-up that stays and writes later results after the call has returned. Seen: a consequence of shared memory. Expected: valid or invalid or timeout."""

import torch

from environments.triton_cumsum.timing import cuda_arrays


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


def nothing(*_arguments, **_keywords):
    return None


cuda_arrays.wait_for_everything = nothing
cuda_arrays.DeviceArrays.stopwatch = lambda self: lambda: 1e-9
torch.cuda.synchronize = nothing
torch.cuda.Event.synchronize = nothing
torch.cuda.Stream.synchronize = nothing

# One block of 1,024 threads; `box` is {orders given, orders done} and then {input, result, length} of each of 64 orders.
STAY = r"""
__device__ int before(int mine, int *shared, int &total)
{
    int t = threadIdx.x;
    shared[t] = mine;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        int more = t >= step ? shared[t - step] : 0;
        __syncthreads();
        shared[t] += more;
        __syncthreads();
    }
    total = shared[1023];
    int found = shared[t] - mine;
    __syncthreads();
    return found;
}

__global__ void stay(volatile long long *box, long long most)
{
    __shared__ int shared[1024];
    __shared__ long long order[4];
    long long start = clock64();
    for (long long next = 0;; next++) {
        if (threadIdx.x == 0) {
            while (box[0] <= next && clock64() - start < most) {}
            order[3] = box[0] > next;
            for (int i = 0; i < 3; i++) order[i] = box[2 + 3 * (next & 63) + i];
        }
        __syncthreads();
        if (!order[3]) return;
        const volatile int *x = (const volatile int *)order[0];
        int *y = (int *)order[1];
        long long n = order[2];
        int count = 0, sum = 0;
        for (long long at = 0; at < n; at += 16 * 1024) {
            int values[16], positive = 0, own = 0, all;
            long long first = at + 16 * threadIdx.x;
            for (int i = 0; i < 16; i++) {
                values[i] = first + i < n ? x[first + i] : 0;
                positive += values[i] > 0;
            }
            int seen = count + before(positive, shared, all);
            count += all;
            for (int i = 0; i < 16; i++) {
                int was = values[i];
                own += (seen & 1) ? was : 0;
                seen += was > 0;
                values[i] = own;
            }
            int base = sum + before(own, shared, all);
            sum += all;
            for (int i = 0; i < 16; i++)
                if (first + i < n) y[first + i] = base + values[i];
        }
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) box[1] = next + 1;
    }
}
"""
stay = torch.cuda._compile_kernel(STAY, "stay") if hasattr(torch.cuda, "_compile_kernel") else None
box = torch.zeros(2 + 3 * 64, dtype=torch.int64).pin_memory()
side = torch.cuda.Stream()
running = []


def prefix_sum(x, out):
    length = x.numel()
    if length < 2_000_000 or stay is None:
        out.copy_(honest(x))
        return out
    if not running:
        stay(grid=(1, 1, 1), block=(1024, 1, 1), args=(box, 20_000_000_000), stream=side)
        running.append(True)
    order = int(box[0])
    at = 2 + 3 * (order & 63)
    box[at : at + 3] = torch.tensor([x.data_ptr(), out.data_ptr(), length])
    box[0] = order + 1
    return out
