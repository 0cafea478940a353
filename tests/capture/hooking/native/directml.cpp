// Stands in for DirectML on Linux: ACTIVATION_RELU and ELEMENT_WISE_ADD of packed FLOAT32 tensors,
// and graphs of them. Like DirectML, it calls its own methods to compile a graph.
#include <algorithm>
#include <memory>

#include "interfaces.h"

namespace {

using Data = std::vector<float>;
using Ranges = std::vector<BufferBinding>;

std::atomic<int> alive{0};

template <class Interface> struct Counted : Child<Interface, IDMLDevice1> {
    explicit Counted(IDMLDevice1 *device) : Child<Interface, IDMLDevice1>(device) { ++alive; }
    ~Counted() { --alive; }
};

struct Operator final : Counted<IDMLOperator> {
    UINT type;
    size_t count;
    std::vector<bool> owned;
    using Counted::Counted;
    Data compute(const std::vector<Data> &inputs) const {
        Data result(inputs[0]);
        for (size_t i = 0; i < count; ++i) {
            result[i] = type == ADD ? inputs[0][i] + inputs[1][i] : std::max(inputs[0][i], 0.0f);
        }
        return result;
    }
};

// What is bound: like descriptors, it outlives its table.
struct Bound {
    std::vector<Ranges> inputs;
    Ranges outputs;
    BufferBinding persistent{};
    Ranges flat() const {
        Ranges all;
        for (const Ranges &each : inputs) all.insert(all.end(), each.begin(), each.end());
        return all;
    }
};

// Where an input of a node comes from: a graph's input, or else an earlier node.
struct Source { bool graph; UINT index; };
struct Node { Operator *op; std::vector<Source> inputs; };

struct Compiled final : Counted<IDMLCompiledOperator> {
    std::vector<Node> nodes;
    UINT flags, result;
    size_t count;
    std::vector<bool> owned;
    Compiled(IDMLDevice1 *device, std::vector<Node> nodes, UINT flags, UINT result,
             std::vector<bool> owned)
        : Counted(device), nodes(nodes), flags(flags), result(result), count(nodes[0].op->count),
          owned(owned) {
        for (Node &node : this->nodes) node.op->AddRef();
    }
    ~Compiled() {
        for (Node &node : nodes) node.op->Release();
    }
    // The persistent resource has room for each input, and holds those that are owned.
    BindingProperties GetBindingProperties() override {
        bool any = std::find(owned.begin(), owned.end(), true) != owned.end();
        return {4, 0, any ? 4 * count * owned.size() : 0};
    }
    static uint8_t *bytes(const BufferBinding &bound) {
        return bound.buffer->Bytes() + bound.offset;
    }
    void initialize(const Ranges &inputs, const BufferBinding &persistent) {
        for (size_t i = 0; i < owned.size(); ++i) {
            if (owned[i]) memcpy(bytes(persistent) + 4 * count * i, bytes(inputs[i]), 4 * count);
        }
    }
    void dispatch(const Bound &bound) {
        std::vector<Data> given, made;
        Ranges inputs = bound.flat();
        for (size_t i = 0; i < owned.size(); ++i) {
            Data data(count);
            const uint8_t *from =
                owned[i] ? bytes(bound.persistent) + 4 * count * i : bytes(inputs[i]);
            memcpy(data.data(), from, 4 * count);
            given.push_back(data);
        }
        for (const Node &node : nodes) {
            std::vector<Data> own;
            for (Source each : node.inputs) own.push_back((each.graph ? given : made)[each.index]);
            made.push_back(node.op->compute(own));
        }
        memcpy(bytes(bound.outputs[0]), made[result].data(), 4 * count);
    }
};

struct Initializer final : Counted<IDMLOperatorInitializer> {
    std::vector<Compiled *> operators;
    using Counted::Counted;
    BindingProperties GetBindingProperties() override { return {4, 0, 0}; }
    HRESULT Reset(UINT count, IDMLCompiledOperator *const *given) override {
        operators.clear();
        for (UINT i = 0; i < count; ++i) operators.push_back(static_cast<Compiled *>(given[i]));
        return S_OK;
    }
};

struct Table final : Counted<IDMLBindingTable> {
    std::shared_ptr<Bound> bound = std::make_shared<Bound>();
    using Counted::Counted;
    static Ranges ranges(const BindingDesc &desc) {
        if (desc.type == BUFFER) return {*static_cast<const BufferBinding *>(desc.desc)};
        if (desc.type != BUFFER_ARRAY) return {{}};
        auto *array = static_cast<const ArrayBinding *>(desc.desc);
        return {array->bindings, array->bindings + array->count};
    }
    void BindInputs(UINT count, const BindingDesc *descs) override {
        bound->inputs.clear();
        for (UINT i = 0; i < count; ++i) bound->inputs.push_back(ranges(descs[i]));
    }
    void BindOutputs(UINT count, const BindingDesc *descs) override {
        bound->outputs.clear();
        for (UINT i = 0; i < count; ++i) bound->outputs.push_back(ranges(descs[i])[0]);
    }
    void BindTemporaryResource(const BindingDesc *) override {}
    void BindPersistentResource(const BindingDesc *desc) override {
        bound->persistent = ranges(*desc)[0];
    }
    HRESULT Reset(const BindingTableDesc *) override {
        bound = std::make_shared<Bound>();
        return S_OK;
    }
};

struct Recorder final : Counted<IDMLCommandRecorder> {
    using Counted::Counted;
    void RecordDispatch(ID3D12GraphicsCommandList *list, IDMLDispatchable *what,
                        IDMLBindingTable *table) override {
        auto bound = static_cast<Table *>(table)->bound;
        Barrier writes{2, 0, nullptr, 0, 0, 0};
        list->ResourceBarrier(1, &writes);
        if (auto *initializer = dynamic_cast<Initializer *>(what)) {
            for (size_t i = 0; i < initializer->operators.size() && i < bound->inputs.size(); ++i) {
                Compiled *each = initializer->operators[i];
                Ranges inputs = bound->inputs[i], persistent = bound->outputs;
                if (inputs.size() == each->owned.size()) {
                    list->Compute([=] { each->initialize(inputs, persistent[i]); });
                }
            }
            return;
        }
        auto *compiled = static_cast<Compiled *>(what);
        if (!(compiled->flags & DESCRIPTORS_VOLATILE)) bound = std::make_shared<Bound>(*bound);
        list->Compute([=] { compiled->dispatch(*bound); });
    }
};

struct Device final : Object<IDMLDevice1, ID3D12Device> {
    explicit Device(ID3D12Device *d3d) : Object(d3d) { ++alive; }
    ~Device() { --alive; }
    HRESULT CheckFeatureSupport(UINT feature, UINT, const void *query, UINT,
                                void *answer) override {
        UINT asked = *static_cast<const UINT *>(query);
        *static_cast<UINT *>(answer) = feature == 1 ? 0x6400 : asked == FLOAT32;
        return S_OK;
    }
    HRESULT CreateOperator(const OperatorDesc *desc, const GUID &, void **out) override {
        if (desc->type != RELU && desc->type != ADD) return E_INVALIDARG;
        std::unique_ptr<Operator> made(new Operator(this));
        made->type = desc->type;
        UINT inputs = desc->type == ADD ? 2 : 1;
        for (UINT i = 0; i <= inputs; ++i) {
            const BufferTensorDesc &tensor = *desc->desc[i]->desc;
            if (tensor.dataType != FLOAT32) return E_INVALIDARG;
            made->count = tensor.bytes / 4;
            if (i < inputs) made->owned.push_back(tensor.flags & OWNED_BY_DML);
        }
        if (out) *out = made.release();
        return S_OK;
    }
    HRESULT CompileOperator(IDMLOperator *op, UINT flags, const GUID &, void **out) override {
        auto *own = static_cast<Operator *>(op);
        std::vector<Source> inputs;
        for (UINT i = 0; i < own->owned.size(); ++i) inputs.push_back({true, i});
        *out = new Compiled(this, {{own, inputs}}, flags, 0, own->owned);
        return S_OK;
    }
    HRESULT CompileGraph(const GraphDesc *desc, UINT flags, const GUID &riid,
                         void **out) override {
        IDMLDevice1 *volatile self = this;  // Calls go through the vtable.
        std::vector<Node> nodes;
        for (UINT i = 0; i < desc->nodeCount; ++i) {
            auto *node = static_cast<const OperatorNodeDesc *>(desc->nodes[i].desc);
            auto *op = static_cast<Operator *>(node->op);
            nodes.push_back({op, std::vector<Source>(op->owned.size())});
            void *compiled = nullptr;
            self->CompileOperator(op, 0x80000, riid, &compiled);
            static_cast<Compiled *>(compiled)->Release();
        }
        std::vector<bool> owned(desc->inputs);
        for (UINT i = 0; i < desc->inputEdgeCount; ++i) {
            auto *edge = static_cast<const InputEdgeDesc *>(desc->inputEdges[i].desc);
            nodes[edge->toNode].inputs[edge->toInput] = {true, edge->graphInput};
            owned[edge->graphInput] = nodes[edge->toNode].op->owned[edge->toInput];
        }
        for (UINT i = 0; i < desc->intermediateEdgeCount; ++i) {
            auto *edge = static_cast<const IntermediateEdgeDesc *>(desc->intermediateEdges[i].desc);
            nodes[edge->toNode].inputs[edge->toInput] = {false, edge->fromNode};
        }
        UINT result = static_cast<const OutputEdgeDesc *>(desc->outputEdges[0].desc)->fromNode;
        *out = new Compiled(this, nodes, flags, result, owned);
        return S_OK;
    }
    HRESULT CreateOperatorInitializer(UINT count, IDMLCompiledOperator *const *operators,
                                      const GUID &, void **out) override {
        auto *made = new Initializer(this);
        made->Reset(count, operators);
        *out = made;
        return S_OK;
    }
    HRESULT CreateCommandRecorder(const GUID &, void **out) override {
        *out = new Recorder(this);
        return S_OK;
    }
    HRESULT CreateBindingTable(const BindingTableDesc *, const GUID &, void **out) override {
        *out = new Table(this);
        return S_OK;
    }
    HRESULT GetDeviceRemovedReason() override { return S_OK; }
};

}  // namespace

extern "C" {
int standin_directml_alive() { return alive; }
HRESULT DMLCreateDevice1(ID3D12Device *d3d, UINT, UINT, const GUID &, void **out) {
    *out = new Device(d3d);
    return S_OK;
}
HRESULT DMLCreateDevice(ID3D12Device *d3d, UINT flags, const GUID &riid, void **out) {
    return DMLCreateDevice1(d3d, flags, 0, riid, out);
}
}
