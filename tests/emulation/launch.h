// After the text of kernels: these by name, called from Python.
static void (*kernel)(Args);
static Args arguments;

static void fiber() {
    kernel(arguments);
    finished[current] = 1;
    while (true) pause();
}

static void run(void (*which)(Args), unsigned blocks, unsigned threads, const Args* args) {
    kernel = which;
    arguments = *args;
    gridDim.x = blocks;
    blockDim.x = threads;
    std::vector<std::vector<char>> stacks(threads, std::vector<char>(1 << 16));
    for (unsigned block = 0; block < blocks; ++block) {
        fibers.assign(threads, ucontext_t());
        finished.assign(threads, 0);
        of_block = Barrier();
        for (auto& barrier : of_warp) barrier = Barrier();
        for (unsigned t = 0; t < threads; ++t) {
            getcontext(&fibers[t]);
            fibers[t].uc_stack.ss_sp = stacks[t].data();
            fibers[t].uc_stack.ss_size = stacks[t].size();
            fibers[t].uc_link = nullptr;
            makecontext(&fibers[t], fiber, 0);
        }
        for (unsigned left = threads; left;) {
            for (current = 0; current < threads; ++current) {
                if (finished[current]) continue;
                threadIdx.x = current;
                blockIdx.x = block;
                swapcontext(&scheduler, &fibers[current]);
                left -= finished[current];
            }
        }
    }
}
