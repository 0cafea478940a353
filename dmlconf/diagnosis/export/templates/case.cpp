// @TITLE@
//
// Runs a DirectML operator or graph, and prints the wrong elements. Exits with 0 if all elements are
// right, with 1 if an element is wrong, and with 2 if a call fails.
//
// MSVC:   cl /std:c++17 /EHsc case.cpp
// MinGW:  x86_64-w64-mingw32-g++ -std=c++17 -static case.cpp -o case.exe
// Both need DirectML.h in the include path, from the Windows SDK or the package Microsoft.AI.DirectML.
//
// case.exe [ADAPTER] [DIRECTML.DLL]   ADAPTER is an index of DXGI, - for the default one.

#define DML_TARGET_VERSION_USE_LATEST
#include <windows.h>
#ifndef _MSC_VER
// DirectML.h has annotations that MinGW's headers may lack; compilers ignore them.
#include <sal.h>
#undef _Maybenull_
#undef _Field_size_
#undef _Field_size_opt_
#undef _Field_size_bytes_
#undef _Field_z_
#undef _COM_Outptr_
#undef _COM_Outptr_opt_
#undef _In_reads_
#undef _In_reads_opt_
#undef _In_reads_bytes_opt_
#undef _Out_writes_bytes_
#undef _Out_writes_bytes_opt_
#undef _In_opt_
#undef _Inout_
#define _Maybenull_
#define _Field_size_(size)
#define _Field_size_opt_(size)
#define _Field_size_bytes_(size)
#define _Field_z_
#define _COM_Outptr_
#define _COM_Outptr_opt_
#define _In_reads_(size)
#define _In_reads_opt_(size)
#define _In_reads_bytes_opt_(size)
#define _Out_writes_bytes_(size)
#define _Out_writes_bytes_opt_(size)
#define _In_opt_
#define _Inout_
#endif
#include <dxgi1_4.h>
#include <d3d12.h>
#include <DirectML.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

// ------------------------------------------------------------------------------- the case

struct Node {
    const char* name;
    const DML_OPERATOR_DESC* desc; // null for a constant
    const unsigned char* data;    // of a constant
    size_t bytes;
};

struct Buffer {
    const char* name;
    UINT64 bytes;             // TotalTensorSizeInBytes, rounded up to a multiple of 4
    const unsigned char* data; // null for outputs
    bool owned;               // DML_TENSOR_FLAG_OWNED_BY_DML
    int alias;                // the input whose buffer an output shares, or -1
};

struct Element {
    UINT64 offset; // in elements of the buffer
    double expected;
    long long integer; // for integer types, the expected bits
};

struct Output {
    DML_TENSOR_DATA_TYPE type;
    const Element* elements;
    size_t count;
    const double* permitted; // intervals of each element: the lowest and the highest number
    size_t intervals;        // per element
    bool signed_zeros;       // -0 and 0 are different numbers
    bool is_signed;          // elements may be negative; only read for types of 4 bits
};

static const double nan_value = std::numeric_limits<double>::quiet_NaN();
static const double infinity = std::numeric_limits<double>::infinity();

@CASE@

// ------------------------------------------------------------------------------- how it runs

static const GUID id_device = {0x189819f1, 0x1db6, 0x4b57, {0xbe, 0x54, 0x18, 0x21, 0x33, 0x9b, 0x85, 0xf7}};
static const GUID id_queue = {0x0ec870a6, 0x5d7e, 0x4c22, {0x8c, 0xfc, 0x5b, 0xaa, 0xe0, 0x76, 0x16, 0xed}};
static const GUID id_allocator = {0x6102dee4, 0xaf59, 0x4b09, {0xb9, 0x99, 0xb4, 0x4d, 0x73, 0xf0, 0x9b, 0x24}};
static const GUID id_list = {0x5b160d0f, 0xac1b, 0x4185, {0x8b, 0xa8, 0xb3, 0xae, 0x42, 0xa5, 0xa4, 0x55}};
static const GUID id_resource = {0x696442be, 0xa72e, 0x4059, {0xbc, 0x79, 0x5b, 0x5c, 0x98, 0x04, 0x0f, 0xad}};
static const GUID id_heap = {0x8efb471d, 0x616c, 0x4f49, {0x90, 0xf7, 0x12, 0x7b, 0xb7, 0x63, 0xfa, 0x51}};
static const GUID id_fence = {0x0a753dcf, 0xc4d8, 0x4b91, {0xad, 0xf6, 0xbe, 0x5a, 0x60, 0xd9, 0x5a, 0x76}};
static const GUID id_factory = {0x770aae78, 0xf26f, 0x4dba, {0xa8, 0x29, 0x25, 0x3c, 0x83, 0xd1, 0xb3, 0x87}};
static const GUID id_dml_device = {0xa0884f9a, 0xd2be, 0x4355, {0xaa, 0x5d, 0x59, 0x01, 0x28, 0x1a, 0xd1, 0xd2}};
static const GUID id_operator = {0x26caae7a, 0x3081, 0x4633, {0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d}};
static const GUID id_compiled = {0x6b15e56a, 0xbf5c, 0x4902, {0x92, 0xd8, 0xda, 0x3a, 0x65, 0x0a, 0xfe, 0xa4}};
static const GUID id_initializer = {0x427c1113, 0x435c, 0x469c, {0x86, 0x76, 0x4d, 0x5d, 0xd0, 0x72, 0xf8, 0x13}};
static const GUID id_table = {0x29c687dc, 0xde74, 0x4e3b, {0xab, 0x00, 0x11, 0x68, 0xf2, 0xfc, 0x3c, 0xfc}};
static const GUID id_recorder = {0xe6857a76, 0x2e3e, 0x4fdd, {0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4, 0x53}};

static ID3D12Device* device;
static ID3D12CommandQueue* queue;
static ID3D12CommandAllocator* allocator;
static ID3D12GraphicsCommandList* list;
static ID3D12Fence* fence;
static UINT64 fence_value;
static HANDLE done; // an event
static const DWORD wait_milliseconds = 60000;

static void check(HRESULT result, const char* call) {
    if (FAILED(result)) {
        std::printf("%s: 0x%08lx\n", call, (unsigned long)result);
        std::exit(2);
    }
}

// Compilers differ in how a member function returns a structure; these calls follow MSVC.
template <typename Result, typename Interface>
static Result returned(Interface* self, int slot) {
    using Function = Result*(STDMETHODCALLTYPE*)(Interface*, Result*);
    Result result = {};
    (*reinterpret_cast<Function**>(self))[slot](self, &result);
    return result;
}

static DML_BINDING_PROPERTIES properties_of(IDMLDispatchable* dispatchable) {
    return returned<DML_BINDING_PROPERTIES>(dispatchable, 8);
}

static ID3D12Resource* make_buffer(UINT64 bytes, D3D12_HEAP_TYPE type) {
    D3D12_HEAP_PROPERTIES heap = {};
    heap.Type = type;
    D3D12_RESOURCE_DESC desc = {};
    desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
    desc.Width = bytes < 4 ? 4 : (bytes + 3) / 4 * 4;
    desc.Height = desc.DepthOrArraySize = desc.MipLevels = desc.SampleDesc.Count = 1;
    desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
    if (type == D3D12_HEAP_TYPE_DEFAULT) desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
    if (type == D3D12_HEAP_TYPE_UPLOAD) state = D3D12_RESOURCE_STATE_GENERIC_READ;
    if (type == D3D12_HEAP_TYPE_READBACK) state = D3D12_RESOURCE_STATE_COPY_DEST;
    ID3D12Resource* resource = nullptr;
    check(device->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                          id_resource, (void**)&resource), "CreateCommittedResource");
    return resource;
}

static void execute() {
    check(list->Close(), "Close");
    ID3D12CommandList* lists[] = {list};
    queue->ExecuteCommandLists(1, lists);
    check(queue->Signal(fence, ++fence_value), "Signal");
    check(fence->SetEventOnCompletion(fence_value, done), "SetEventOnCompletion");
    if (WaitForSingleObject(done, wait_milliseconds) != WAIT_OBJECT_0) {
        std::printf("the device did not finish its work within %lu seconds\n", wait_milliseconds / 1000);
        std::fflush(stdout);
        std::_Exit(2); // Releasing what the device still uses may block forever.
    }
    check(device->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
    check(allocator->Reset(), "Reset");
    check(list->Reset(allocator, nullptr), "Reset");
}

static void transition(ID3D12Resource* resource, D3D12_RESOURCE_STATES from, D3D12_RESOURCE_STATES to) {
    D3D12_RESOURCE_BARRIER barrier = {};
    barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
    barrier.Transition.pResource = resource;
    barrier.Transition.Subresource = D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES;
    barrier.Transition.StateBefore = from;
    barrier.Transition.StateAfter = to;
    list->ResourceBarrier(1, &barrier);
}

// Fill a buffer with bytes; without any, with 0xCC, so that unwritten elements show.
static ID3D12Resource* filled(const Buffer& buffer) {
    ID3D12Resource* target = make_buffer(buffer.bytes, D3D12_HEAP_TYPE_DEFAULT);
    ID3D12Resource* upload = make_buffer(buffer.bytes, D3D12_HEAP_TYPE_UPLOAD);
    void* memory = nullptr;
    check(upload->Map(0, nullptr, &memory), "Map");
    if (buffer.data) std::memcpy(memory, buffer.data, (size_t)buffer.bytes);
    else std::memset(memory, 0xCC, (size_t)buffer.bytes);
    upload->Unmap(0, nullptr);
    transition(target, D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_DEST);
    list->CopyBufferRegion(target, 0, upload, 0, buffer.bytes);
    transition(target, D3D12_RESOURCE_STATE_COPY_DEST, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    execute();
    upload->Release();
    return target;
}

static std::vector<unsigned char> read_back(ID3D12Resource* source, UINT64 bytes) {
    ID3D12Resource* target = make_buffer(bytes, D3D12_HEAP_TYPE_READBACK);
    transition(source, D3D12_RESOURCE_STATE_UNORDERED_ACCESS, D3D12_RESOURCE_STATE_COPY_SOURCE);
    list->CopyBufferRegion(target, 0, source, 0, bytes);
    transition(source, D3D12_RESOURCE_STATE_COPY_SOURCE, D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    execute();
    void* memory = nullptr;
    check(target->Map(0, nullptr, &memory), "Map");
    std::vector<unsigned char> content((unsigned char*)memory, (unsigned char*)memory + bytes);
    target->Unmap(0, nullptr);
    target->Release();
    return content;
}

static double half_value(unsigned bits) {
    const double sign = bits & 0x8000 ? -1 : 1;
    const int exponent = bits >> 10 & 0x1F;
    const unsigned fraction = bits & 0x3FF;
    if (exponent == 0x1F) return fraction ? nan_value : sign * infinity;
    if (!exponent) return sign * std::ldexp((double)fraction, -24);
    return sign * std::ldexp((double)(fraction + 1024), exponent - 25);
}

template <typename Number>
static Number stored(const std::vector<unsigned char>& content, UINT64 offset) {
    Number number;
    std::memcpy(&number, content.data() + offset * sizeof(Number), sizeof(Number));
    return number;
}

static bool is_permitted(const Output& output, size_t index, double actual) {
    for (size_t at = 0; at < output.intervals; ++at) {
        const double* ends = output.permitted + (index * output.intervals + at) * 2;
        if (actual >= ends[0] && actual <= ends[1]) return true;
        if (std::isnan(actual) && std::isnan(ends[0]) && std::isnan(ends[1])) return true;
        if (ends[0] == -infinity && ends[1] == infinity) return true;
    }
    return false;
}

static void print_permitted(const Output& output, size_t index) {
    for (size_t at = 0; at < output.intervals; ++at) {
        const double* ends = output.permitted + (index * output.intervals + at) * 2;
        std::printf("%sfrom %.9g to %.9g", at ? " or " : "", ends[0], ends[1]);
    }
}

// Compare one element, and print it if it is wrong.
static bool is_right(const char* name, size_t index, const Output& output, const std::vector<unsigned char>& content) {
    const Element& element = output.elements[index];
    double actual = 0;
    long long integer = 0;
    bool whole = true;
    switch (output.type) {
        case DML_TENSOR_DATA_TYPE_FLOAT64: actual = stored<double>(content, element.offset); whole = false; break;
        case DML_TENSOR_DATA_TYPE_FLOAT32: actual = stored<float>(content, element.offset); whole = false; break;
        case DML_TENSOR_DATA_TYPE_FLOAT16: actual = half_value(stored<uint16_t>(content, element.offset)); whole = false; break;
        case DML_TENSOR_DATA_TYPE_INT64:
        case DML_TENSOR_DATA_TYPE_UINT64: integer = stored<int64_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_INT32: integer = stored<int32_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_UINT32: integer = stored<uint32_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_INT16: integer = stored<int16_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_UINT16: integer = stored<uint16_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_INT8: integer = stored<int8_t>(content, element.offset); break;
        case DML_TENSOR_DATA_TYPE_UINT8: integer = stored<uint8_t>(content, element.offset); break;
        default: { // 4-bit types: the low half of each byte is the first element.
            integer = content[(size_t)(element.offset / 2)] >> (element.offset % 2 * 4) & 0xF;
            if (output.is_signed && integer > 7) integer -= 16;
        }
    }
    if (whole) {
        const double* ends = output.permitted + index * output.intervals * 2;
        const bool single = output.intervals == 1 && ends[0] == ends[1]; // Doubles hold 53 bits only.
        if (integer == element.integer || (!single && is_permitted(output, index, (double)integer))) return true;
        std::printf("WRONG %s element %zu: expected %lld, actual %lld\n", name, index, element.integer, integer);
        return false;
    }
    const bool other_zero = output.signed_zeros && actual == 0 && element.expected == 0 &&
                            std::signbit(actual) != std::signbit(element.expected);
    if (is_permitted(output, index, actual) && !other_zero) return true;
    if (std::isnan(element.expected) && std::isnan(actual)) return true;
    std::printf("WRONG %s element %zu: expected %.9g (", name, index, element.expected);
    print_permitted(output, index);
    std::printf("), actual %.9g\n", actual);
    return false;
}

struct Binding {
    DML_BUFFER_BINDING buffer;
    DML_BINDING_DESC desc;
};

static DML_BINDING_DESC described(DML_BUFFER_BINDING& buffer) {
    if (!buffer.Buffer) return {DML_BINDING_TYPE_NONE, nullptr};
    return {DML_BINDING_TYPE_BUFFER, &buffer};
}

static FARPROC function(const char* library, const char* name) {
    HMODULE module = LoadLibraryA(library);
    if (!module) { std::printf("%s cannot be loaded\n", library); std::exit(2); }
    FARPROC address = GetProcAddress(module, name);
    if (!address) { std::printf("%s has no %s\n", library, name); std::exit(2); }
    return address;
}

static IDMLOperator* create_operator(IDMLDevice1* dml, const Node& node) {
    IDMLOperator* created = nullptr;
    const HRESULT result = dml->CreateOperator(node.desc, id_operator, (void**)&created);
    if (FAILED(result)) std::printf("%s: ", node.name);
    check(result, "CreateOperator");
    return created;
}

template <typename Edge>
static std::vector<DML_GRAPH_EDGE_DESC> edge_descs(DML_GRAPH_EDGE_TYPE type, const std::vector<Edge>& edges) {
    std::vector<DML_GRAPH_EDGE_DESC> descs;
    for (const auto& edge : edges) descs.push_back({type, &edge});
    return descs;
}

static IDMLCompiledOperator* compile(IDMLDevice1* dml) {
    IDMLCompiledOperator* compiled = nullptr;
    if (!compile_graph) {
        IDMLOperator* op = create_operator(dml, nodes[0]);
        check(dml->CompileOperator(op, execution_flags, id_compiled, (void**)&compiled), "CompileOperator");
        return compiled;
    }
    std::vector<DML_OPERATOR_GRAPH_NODE_DESC> operators(nodes.size());
#ifdef HAS_CONSTANTS
    std::vector<DML_CONSTANT_DATA_GRAPH_NODE_DESC> constants(nodes.size());
#endif
    std::vector<DML_GRAPH_NODE_DESC> node_descs;
    for (size_t i = 0; i < nodes.size(); ++i) {
#ifdef HAS_CONSTANTS
        if (!nodes[i].desc) {
            constants[i] = {nodes[i].data, nodes[i].bytes, nodes[i].name};
            node_descs.push_back({DML_GRAPH_NODE_TYPE_CONSTANT, &constants[i]});
            continue;
        }
#endif
        operators[i] = {create_operator(dml, nodes[i]), nodes[i].name};
        node_descs.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &operators[i]});
    }
    const auto ins = edge_descs(DML_GRAPH_EDGE_TYPE_INPUT, input_edges);
    const auto outs = edge_descs(DML_GRAPH_EDGE_TYPE_OUTPUT, output_edges);
    const auto between = edge_descs(DML_GRAPH_EDGE_TYPE_INTERMEDIATE, intermediate_edges);
    DML_GRAPH_DESC graph = {};
    graph.InputCount = (UINT)inputs.size();
    graph.OutputCount = (UINT)outputs.size();
    graph.NodeCount = (UINT)node_descs.size();
    graph.Nodes = node_descs.data();
    graph.InputEdgeCount = (UINT)ins.size();
    graph.InputEdges = ins.data();
    graph.OutputEdgeCount = (UINT)outs.size();
    graph.OutputEdges = outs.data();
    graph.IntermediateEdgeCount = (UINT)between.size();
    graph.IntermediateEdges = between.data();
    check(dml->CompileGraph(&graph, execution_flags, id_compiled, (void**)&compiled), "CompileGraph");
    return compiled;
}

int main(int count, char** words) {
    IUnknown* adapter = nullptr;
    if (count > 1 && std::strcmp(words[1], "-") != 0) {
        using Create = HRESULT(WINAPI*)(REFIID, void**);
        IDXGIFactory1* factory = nullptr;
        check(((Create)(void*)function("dxgi.dll", "CreateDXGIFactory1"))(id_factory, (void**)&factory), "CreateDXGIFactory1");
        IDXGIAdapter1* chosen = nullptr;
        check(factory->EnumAdapters1((UINT)std::atoi(words[1]), &chosen), "EnumAdapters1");
        adapter = chosen;
    }
    using CreateDevice = HRESULT(WINAPI*)(IUnknown*, D3D_FEATURE_LEVEL, REFIID, void**);
    const CreateDevice create_device = (CreateDevice)(void*)function("d3d12.dll", "D3D12CreateDevice");
    check(create_device(adapter, D3D_FEATURE_LEVEL_11_0, id_device, (void**)&device), "D3D12CreateDevice");
    using CreateDml = HRESULT(WINAPI*)(ID3D12Device*, DML_CREATE_DEVICE_FLAGS, DML_FEATURE_LEVEL, REFIID, void**);
    const CreateDml create_dml = (CreateDml)(void*)function(count > 2 ? words[2] : "DirectML.dll", "DMLCreateDevice1");
    IDMLDevice1* dml = nullptr;
    check(create_dml(device, DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_1_0, id_dml_device, (void**)&dml), "DMLCreateDevice1");

    D3D12_COMMAND_QUEUE_DESC queue_desc = {};
    check(device->CreateCommandQueue(&queue_desc, id_queue, (void**)&queue), "CreateCommandQueue");
    check(device->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_DIRECT, id_allocator, (void**)&allocator), "CreateCommandAllocator");
    check(device->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator, nullptr, id_list, (void**)&list), "CreateCommandList");
    done = CreateEventW(nullptr, FALSE, FALSE, nullptr);
    check(done ? S_OK : E_FAIL, "CreateEvent");
    check(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, id_fence, (void**)&fence), "CreateFence");

    IDMLCompiledOperator* compiled = compile(dml);
    IDMLOperatorInitializer* initializer = nullptr;
    check(dml->CreateOperatorInitializer(1, &compiled, id_initializer, (void**)&initializer), "CreateOperatorInitializer");

    const DML_BINDING_PROPERTIES initial = properties_of(initializer), running = properties_of(compiled);
    D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {};
    heap_desc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
    heap_desc.NumDescriptors = initial.RequiredDescriptorCount + running.RequiredDescriptorCount + 1;
    heap_desc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
    ID3D12DescriptorHeap* heap = nullptr;
    check(device->CreateDescriptorHeap(&heap_desc, id_heap, (void**)&heap), "CreateDescriptorHeap");
    const auto cpu = returned<D3D12_CPU_DESCRIPTOR_HANDLE>(heap, 9);
    const auto gpu = returned<D3D12_GPU_DESCRIPTOR_HANDLE>(heap, 10);
    const UINT step = device->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);

    std::vector<DML_BUFFER_BINDING> in(inputs.size()), out(outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name) in[i] = {filled(inputs[i]), 0, inputs[i].bytes};
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].name) continue;
        if (outputs[i].alias >= 0) out[i] = {in[(size_t)outputs[i].alias].Buffer, 0, outputs[i].bytes};
        else out[i] = {filled(outputs[i]), 0, outputs[i].bytes};
    }
    DML_BUFFER_BINDING persistent = {}, temporary = {}, initial_temporary = {};
    if (running.PersistentResourceSize) persistent = {make_buffer(running.PersistentResourceSize, D3D12_HEAP_TYPE_DEFAULT), 0, running.PersistentResourceSize};
    if (running.TemporaryResourceSize) temporary = {make_buffer(running.TemporaryResourceSize, D3D12_HEAP_TYPE_DEFAULT), 0, running.TemporaryResourceSize};
    if (initial.TemporaryResourceSize) initial_temporary = {make_buffer(initial.TemporaryResourceSize, D3D12_HEAP_TYPE_DEFAULT), 0, initial.TemporaryResourceSize};

    IDMLCommandRecorder* recorder = nullptr;
    check(dml->CreateCommandRecorder(id_recorder, (void**)&recorder), "CreateCommandRecorder");

    // Initialize: DirectML takes the tensors that it owns here.
    DML_BINDING_TABLE_DESC table_desc = {initializer, cpu, gpu, initial.RequiredDescriptorCount};
    IDMLBindingTable* table = nullptr;
    check(dml->CreateBindingTable(&table_desc, id_table, (void**)&table), "CreateBindingTable");
    std::vector<DML_BUFFER_BINDING> owned(inputs.size());
    bool any_owned = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].owned) { owned[i] = in[i]; any_owned = true; }
    }
    DML_BUFFER_ARRAY_BINDING owned_array = {(UINT)owned.size(), owned.data()};
    DML_BINDING_DESC owned_desc = {DML_BINDING_TYPE_BUFFER_ARRAY, &owned_array};
    if (any_owned) table->BindInputs(1, &owned_desc);
    if (persistent.Buffer) { DML_BINDING_DESC desc = described(persistent); table->BindOutputs(1, &desc); }
    if (initial_temporary.Buffer) { DML_BINDING_DESC desc = described(initial_temporary); table->BindTemporaryResource(&desc); }
    list->SetDescriptorHeaps(1, &heap);
    recorder->RecordDispatch(list, initializer, table);
    execute();

    // Run.
    table_desc.Dispatchable = compiled;
    table_desc.CPUDescriptorHandle.ptr += (SIZE_T)step * initial.RequiredDescriptorCount;
    table_desc.GPUDescriptorHandle.ptr += (UINT64)step * initial.RequiredDescriptorCount;
    table_desc.SizeInDescriptors = running.RequiredDescriptorCount;
    check(table->Reset(&table_desc), "Reset");
    std::vector<DML_BINDING_DESC> in_descs, out_descs;
    for (size_t i = 0; i < in.size(); ++i) {
        in_descs.push_back(inputs[i].owned ? DML_BINDING_DESC{DML_BINDING_TYPE_NONE, nullptr} : described(in[i]));
    }
    for (auto& binding : out) out_descs.push_back(described(binding));
    size_t wrong = 0;
    for (int run = 0; run < runs; ++run) {
        table->BindInputs((UINT)in_descs.size(), in_descs.data());
        table->BindOutputs((UINT)out_descs.size(), out_descs.data());
        if (persistent.Buffer) { DML_BINDING_DESC desc = described(persistent); table->BindPersistentResource(&desc); }
        if (temporary.Buffer) { DML_BINDING_DESC desc = described(temporary); table->BindTemporaryResource(&desc); }
        list->SetDescriptorHeaps(1, &heap);
        recorder->RecordDispatch(list, compiled, table);
        execute();
        for (size_t i = 0; i < outputs.size(); ++i) {
            if (!outputs[i].name) continue;
            const auto content = read_back(out[i].Buffer, outputs[i].bytes);
            for (size_t index = 0; index < expected[i].count; ++index) {
                wrong += !is_right(outputs[i].name, index, expected[i], content);
            }
        }
    }
    std::printf("%zu wrong elements\n", wrong);
    return wrong ? 1 : 0;
}
