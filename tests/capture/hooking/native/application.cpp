// An application that uses DirectML. It is linked with libdirectml.so; with LATE, it opens that
// library itself, or the file that APPLICATION_DIRECTML names. Its threads run no Python.
#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "interfaces.h"

using CreateDevice = HRESULT(ID3D12Device *, UINT, UINT, const GUID &, void **);

extern "C" HRESULT D3D12CreateDevice(void *, UINT, const GUID &, void **);
#ifdef LATE
static CreateDevice *looked_up() {
    const char *name = getenv("APPLICATION_DIRECTML");
    void *library = dlopen(name ? name : "libdirectml.so", RTLD_NOW);  // Next to this library.
    return library ? (CreateDevice *)dlsym(library, "DMLCreateDevice1") : nullptr;
}
static CreateDevice *create_device() {
    static CreateDevice *function = looked_up();
    return function;
}
#else
extern "C" CreateDevice DMLCreateDevice1;
static CreateDevice *create_device() { return DMLCreateDevice1; }
#endif

namespace {

constexpr UINT COUNT = 6;
const UINT SIZES[] = {1, 1, 2, 3};
const GUID ANY{};

template <class Interface> struct Owned {
    Interface *pointer = nullptr;
    ~Owned() {
        if (pointer) pointer->Release();
    }
    void **out() { return (void **)&pointer; }
    Interface *operator->() const { return pointer; }
    operator Interface *() const { return pointer; }
};

struct Application {
    Owned<ID3D12Device> d3d;
    Owned<ID3D12CommandQueue> queue;
    Owned<IDMLDevice1> device;
};

// When the tensors are bound: before a dispatch is recorded, afterwards, or afterwards again.
enum class Bound { Before, After, Again };

// An owned input B of the addition is bound when its operator is initialised.
struct Run {
    Application &app;
    bool owned;
    Bound when;
    Owned<ID3D12Resource> buffers[3], readback, persistent, spare;
    BufferTensorDesc packed{FLOAT32, 0, 4, SIZES, nullptr, 4 * COUNT, 0};
    BufferTensorDesc weight{FLOAT32, OWNED_BY_DML, 4, SIZES, nullptr, 4 * COUNT, 0};
    TensorDesc tensor{1, &packed}, second{1, owned ? &weight : &packed};
    BufferBinding bindings[3];
    BindingDesc descs[3];

    Run(Application &app, bool owned, Bound when, const float *a, const float *b)
        : app(app), owned(owned), when(when) {
        for (int i = 0; i < 3; ++i) {
            buffer(buffers[i], UPLOAD_HEAP);
            if (i < 2) memcpy(buffers[i]->Bytes(), i ? b : a, 4 * COUNT);
            bindings[i] = {buffers[i], 0, 4 * COUNT};
            descs[i] = {BUFFER, &bindings[i]};
        }
        buffer(readback, READBACK_HEAP);
        buffer(persistent, DEFAULT_HEAP, 8 * COUNT);
        buffer(spare, DEFAULT_HEAP, 8 * COUNT);
    }
    void buffer(Owned<ID3D12Resource> &made, UINT heap, UINT64 bytes = 4 * COUNT) {
        HeapProperties properties{heap, 0, 0, 0, 0};
        ResourceDesc desc{1, 0, bytes, 1, 1, 1, 0, 1, 0, 1, 0};
        app.d3d->CreateCommittedResource(&properties, 0, &desc, 0, nullptr, ANY, made.out());
    }
    void add(Owned<IDMLOperator> &made) {
        const TensorDesc *fields[] = {&tensor, &second, &tensor};
        OperatorDesc desc{ADD, fields};
        app.device->CreateOperator(&desc, ANY, made.out());
    }
    void relu(Owned<IDMLOperator> &made) {
        const TensorDesc *fields[] = {&tensor, &tensor, nullptr};
        OperatorDesc desc{RELU, fields};
        app.device->CreateOperator(&desc, ANY, made.out());
    }
    void graph(Owned<IDMLCompiledOperator> &made) {
        Owned<IDMLOperator> first, last;
        add(first);
        relu(last);
        OperatorNodeDesc operators[] = {{first, "/sum"}, {last, "/relu"}};
        NodeDesc nodes[] = {{1, &operators[0]}, {1, &operators[1]}};
        InputEdgeDesc inputs[] = {{0, 0, 0, nullptr}, {1, 0, 1, nullptr}};
        NodeDesc input_edges[] = {{1, &inputs[0]}, {1, &inputs[1]}};
        OutputEdgeDesc output{1, 0, 0, nullptr};
        NodeDesc output_edge{2, &output};
        IntermediateEdgeDesc between{0, 0, 1, 0, nullptr};
        NodeDesc edge{3, &between};
        GraphDesc desc{2, 1, 2, nodes, 2, input_edges, 1, &output_edge, 1, &edge};
        UINT flags = when == Bound::Before ? 0 : DESCRIPTORS_VOLATILE;
        app.device->CompileGraph(&desc, flags, ANY, made.out());
    }
    // Initialises an operator, together with another one if there is one, and dispatches it.
    void execute(IDMLCompiledOperator *compiled, float *result,
                 IDMLCompiledOperator *other = nullptr) {
        Owned<ID3D12CommandAllocator> allocator;
        Owned<ID3D12GraphicsCommandList> commands;
        Owned<IDMLOperatorInitializer> initializer;
        Owned<IDMLCommandRecorder> recorder;
        Owned<IDMLBindingTable> table, initial;
        Owned<ID3D12Fence> fence;
        app.d3d->CreateCommandAllocator(2, ANY, allocator.out());
        app.d3d->CreateCommandList(0, 2, allocator, nullptr, ANY, commands.out());
        app.d3d->CreateFence(0, 0, ANY, fence.out());
        app.device->CreateCommandRecorder(ANY, recorder.out());
        IDMLCompiledOperator *initialized[] = {compiled, other};
        UINT count = other ? 2 : 1;
        app.device->CreateOperatorInitializer(count, initialized, ANY, initializer.out());

        BindingTableDesc initial_desc{initializer, {}, {}, 4}, desc{compiled, {}, {}, 4};
        BufferBinding weights[] = {{}, bindings[1]};
        ArrayBinding array{2, weights};
        BufferBinding kept{persistent, 0, 8 * COUNT}, also_kept{spare, 0, 8 * COUNT};
        BindingDesc weight{BUFFER_ARRAY, &array}, none{0, nullptr}, own{BUFFER, &kept};
        BindingDesc taken[] = {weight, weight}, into[] = {own, {BUFFER, &also_kept}};
        app.device->CreateBindingTable(&initial_desc, ANY, initial.out());
        initial->BindInputs(count, owned ? taken : &none);
        initial->BindOutputs(count, owned ? into : &none);
        recorder->RecordDispatch(commands, initializer, initial);

        app.device->CreateBindingTable(&desc, ANY, table.out());
        BindingDesc inputs[] = {descs[0], owned ? none : descs[1]};
        auto bind = [&] {
            table->BindInputs(2, inputs);
            table->BindOutputs(1, &descs[2]);
            table->BindPersistentResource(owned ? &own : &none);
        };
        if (when == Bound::Before) bind();
        {
            Owned<ID3D12Resource> first;  // It is gone when the list is submitted.
            if (when == Bound::Again) {
                buffer(first, DEFAULT_HEAP);
                BufferBinding whole{first, 0, 4 * COUNT};
                BindingDesc all{BUFFER, &whole}, both[] = {all, all};
                table->BindInputs(2, both);
                table->BindOutputs(1, &all);
            }
            recorder->RecordDispatch(commands, compiled, table);
            commands->CopyBufferRegion(readback, 0, buffers[2], 0, 4 * COUNT);
            commands->Close();
            if (when != Bound::Before) bind();
        }
        ID3D12GraphicsCommandList *lists[] = {commands};
        app.queue->ExecuteCommandLists(1, lists);
        app.queue->Signal(fence, 1);
        while (fence->GetCompletedValue() < 1) std::this_thread::yield();
        memcpy(result, readback->Bytes(), 4 * COUNT);
    }
};

}  // namespace

extern "C" {
Application *application_open() {
    auto *app = new Application;
    QueueDesc queue{2, 0, 0, 0};
    CreateDevice *create = create_device();
    if (!create || D3D12CreateDevice(nullptr, 0xb000, ANY, app->d3d.out()) ||
        app->d3d->CreateCommandQueue(&queue, ANY, app->queue.out()) ||
        create(app->d3d, 0, 0x2000, ANY, app->device.out())) {
        delete app;
        return nullptr;
    }
    return app;
}

void application_close(Application *app) { delete app; }

// Adds, with b taken over when the operator is initialised.
void application_add(Application *app, const float *a, const float *b, float *result) {
    Run run(*app, true, Bound::Before, a, b);
    Owned<IDMLOperator> op;
    Owned<IDMLCompiledOperator> compiled;
    run.add(op);
    app->device->CompileOperator(op, 0, ANY, compiled.out());
    run.execute(compiled, result);
}

// The same, but one initialiser initialises two such operators.
void application_pair(Application *app, const float *a, const float *b, float *result) {
    Run run(*app, true, Bound::Before, a, b);
    Owned<IDMLOperator> op;
    Owned<IDMLCompiledOperator> first, second;
    run.add(op);
    app->device->CompileOperator(op, 0, ANY, first.out());
    app->device->CompileOperator(op, 0, ANY, second.out());
    run.execute(first, result, second);
}

static void graph(Application *app, Bound when, const float *a, const float *b, float *result) {
    Run run(*app, false, when, a, b);
    Owned<IDMLCompiledOperator> compiled;
    run.graph(compiled);
    run.execute(compiled, result);
}

// Adds and cuts off at 0, in a graph whose tensors are bound after it is recorded.
void application_graph(Application *app, const float *a, const float *b, float *result) {
    graph(app, Bound::After, a, b, result);
}

// The same, but other tensors are bound before the graph is recorded, and then released.
void application_again(Application *app, const float *a, const float *b, float *result) {
    graph(app, Bound::Again, a, b, result);
}

// Creates an operator that does not exist, and returns the HRESULT.
HRESULT application_refused(Application *app) {
    OperatorDesc desc{9999, nullptr};
    Owned<IDMLOperator> op;
    return app->device->CreateOperator(&desc, ANY, op.out());
}

// Adds on several threads at once; `results` has room for each.
void application_threads(Application *app, int count, const float *a, const float *b,
                         float *results) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([=] { application_add(app, a, b, results + COUNT * i); });
    }
    for (std::thread &each : threads) each.join();
}
}
