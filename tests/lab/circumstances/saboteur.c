/* A DirectML that is wrong in one circumstance only, as DMLCONF_SABOTEUR names it.

   It lies between dmlconf and the DirectML that DMLCONF_DIRECTML names, whose methods it replaces:

   repeated   The third and later dispatches of a binding table that is not bound again are skipped.
   rebound    A table that is bound again without a reset keeps its first bindings.
   offset     Offsets of bindings are rounded down to multiples of 256.
   owned      Inputs in an upload heap are read when the operator runs, not at its initialisation.
   volatile   A table whose dispatch is recorded keeps its bindings despite DESCRIPTORS_VOLATILE.
   aliased    A dispatch whose output is in place of an input is skipped.
   evicted    The first dispatch after an eviction is skipped.
   interleaved  A dispatch without a barrier between it and the one before is skipped.
   long       Every dispatch takes 64 KiB of memory and never frees them. */

#include <initguid.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define COBJMACROS
#include <d3d12.h>
#include <stdlib.h>
#include <string.h>

/* Places in the tables of functions, as DirectML.h declares the methods. */
enum { COMPILE_OPERATOR = 9, CREATE_COMMAND_RECORDER = 11, CREATE_BINDING_TABLE = 12 };
enum { COMPILE_GRAPH = 17, DESCRIPTORS_VOLATILE = 4 };
enum { BIND_INPUTS = 8, BIND_OUTPUTS = 9, RESET = 12 };
enum { RECORD_DISPATCH = 8 };
enum { RESOURCE_BARRIER = 26, EVICT = 35 };
enum { BINDING_BUFFER = 1, BINDING_BUFFER_ARRAY = 2 };
enum { MOST = 4096, MOST_INPUTS = 16, ALIGNMENT = 256, DISPATCHES = 2, LOST = 1 << 16 };

typedef struct { UINT type; const void *desc; } Binding;
typedef struct { ID3D12Resource *buffer; UINT64 offset, size; } BufferBinding;
typedef struct { UINT count; const BufferBinding *bindings; } ArrayBinding;

typedef HRESULT (WINAPI *CreateDevice)(void *, UINT, const GUID *, void **);
typedef HRESULT (WINAPI *CreateDevice1)(void *, UINT, UINT, const GUID *, void **);
typedef HRESULT (WINAPI *Compile)(void *, const void *, UINT, const GUID *, void **);
typedef HRESULT (WINAPI *CreateRecorder)(void *, const GUID *, void **);
typedef HRESULT (WINAPI *CreateTable)(void *, const void *, const GUID *, void **);
typedef void (WINAPI *Bind)(void *, UINT, const Binding *);
typedef HRESULT (WINAPI *ResetTable)(void *, const void *);
typedef void (WINAPI *Barrier)(void *, UINT, const D3D12_RESOURCE_BARRIER *);
typedef HRESULT (WINAPI *Evict)(void *, UINT, void *const *);
typedef void (WINAPI *Record)(void *, ID3D12GraphicsCommandList *, void *, void *);

typedef struct {
    void *table;
    UINT inputs, outputs, dispatches, count;
    int aliased, sealed;
    BufferBinding ranges[MOST_INPUTS];
    void *late;
} State;

static State states[MOST];
static UINT used;
static const void *volatile_operators[MOST];
static UINT volatile_count;
static Compile compile_operator, compile_graph;
static CreateRecorder create_recorder;
static CreateTable create_table;
static Bind bind_inputs, bind_outputs;
static ResetTable reset_table;
static Record record_dispatch;
static Barrier resource_barrier;
static Evict evict;
static int evicted;
static void *without_barrier;

static int is(const char *circumstance)
{
    char name[32] = "";
    GetEnvironmentVariableA("DMLCONF_SABOTEUR", name, sizeof name);
    return !strcmp(name, circumstance);
}

static State *state_of(void *table)
{
    for (UINT i = 0; i < used && i < MOST; i++)
        if (states[i].table == table)
            return &states[i];
    State *state = &states[used++ % MOST];
    memset(state, 0, sizeof *state);
    state->table = table;
    return state;
}

/* Put a function into an object's table of functions; return the one that was there. */
static void *replaced(void *object, int place, void *function)
{
    void **entry = *(void ***)object + place, *before = *entry;
    DWORD protection;
    if (before != function && VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &protection)) {
        *entry = function;
        VirtualProtect(entry, sizeof *entry, protection, &protection);
    }
    return before;
}

static void replace(void *object, int place, void *function, void **before)
{
    void *old = replaced(object, place, function);
    if (old != function)
        *before = old;
}

static int in_upload_heap(UINT count, const Binding *bindings)
{
    if (!count || bindings[0].type != BINDING_BUFFER_ARRAY)
        return 0;
    const ArrayBinding *array = bindings[0].desc;
    for (UINT i = 0; i < array->count; i++) {
        D3D12_HEAP_PROPERTIES heap = {0};
        if (array->bindings[i].buffer) {
            ID3D12Resource_GetHeapProperties(array->bindings[i].buffer, &heap, NULL);
            if (heap.Type == D3D12_HEAP_TYPE_UPLOAD)
                return 1;
        }
    }
    return 0;
}

static void bind(Bind real, void *table, UINT count, const Binding *bindings)
{
    Binding moved[64];
    BufferBinding ranges[64];
    if (state_of(table)->sealed)
        return;
    if (!is("offset") || !bindings || count > 64) {
        real(table, count, bindings);
        return;
    }
    for (UINT i = 0; i < count; i++) {
        moved[i] = bindings[i];
        if (bindings[i].type == BINDING_BUFFER) {
            ranges[i] = *(const BufferBinding *)bindings[i].desc;
            ranges[i].offset -= ranges[i].offset % ALIGNMENT;
            moved[i].desc = &ranges[i];
        }
    }
    real(table, count, moved);
}

static void WINAPI bind_inputs_wrongly(void *table, UINT count, const Binding *bindings)
{
    State *state = state_of(table);
    state->dispatches = 0;
    if (is("owned") && in_upload_heap(count, bindings))
        state->late = table;
    state->count = 0;
    for (UINT i = 0; bindings && i < count && state->count < MOST_INPUTS; i++)
        if (bindings[i].type == BINDING_BUFFER)
            state->ranges[state->count++] = *(const BufferBinding *)bindings[i].desc;
    if (!state->inputs++ || !is("rebound"))
        bind(bind_inputs, table, count, bindings);
}

static void WINAPI bind_outputs_wrongly(void *table, UINT count, const Binding *bindings)
{
    State *state = state_of(table);
    state->aliased = 0;
    for (UINT i = 0; bindings && i < count; i++)
        for (UINT k = 0; k < state->count && bindings[i].type == BINDING_BUFFER; k++) {
            const BufferBinding *range = bindings[i].desc;
            if (range->buffer == state->ranges[k].buffer && range->offset == state->ranges[k].offset)
                state->aliased = 1;
        }
    if (!state->outputs++ || !is("rebound"))
        bind(bind_outputs, table, count, bindings);
}

static void WINAPI barrier_wrongly(
    void *commands, UINT count, const D3D12_RESOURCE_BARRIER *barriers)
{
    if (without_barrier == commands)
        without_barrier = NULL;
    resource_barrier(commands, count, barriers);
}

static HRESULT WINAPI evict_wrongly(void *device, UINT count, void *const *objects)
{
    evicted = 1;
    return evict(device, count, objects);
}

static HRESULT WINAPI reset_wrongly(void *table, const void *desc)
{
    memset(state_of(table), 0, sizeof(State));
    return reset_table(table, desc);
}

/* An operator may have the address of one that was released. */
static void note_volatile(HRESULT result, UINT flags, void **compiled)
{
    if (FAILED(result) || !compiled)
        return;
    for (UINT i = 0; i < volatile_count && i < MOST; i++)
        if (volatile_operators[i] == *compiled)
            volatile_operators[i] = NULL;
    if (flags & DESCRIPTORS_VOLATILE)
        volatile_operators[volatile_count++ % MOST] = *compiled;
}

static int is_volatile(const void *dispatchable)
{
    for (UINT i = 0; i < volatile_count && i < MOST; i++)
        if (volatile_operators[i] == dispatchable)
            return 1;
    return 0;
}

static HRESULT WINAPI compile_operator_noted(
    void *device, const void *op, UINT flags, const GUID *iid, void **compiled)
{
    HRESULT result = compile_operator(device, op, flags, iid, compiled);
    note_volatile(result, flags, compiled);
    return result;
}

static HRESULT WINAPI compile_graph_noted(
    void *device, const void *desc, UINT flags, const GUID *iid, void **compiled)
{
    HRESULT result = compile_graph(device, desc, flags, iid, compiled);
    note_volatile(result, flags, compiled);
    return result;
}

static void WINAPI record_wrongly(
    void *recorder, ID3D12GraphicsCommandList *commands, void *dispatchable, void *table)
{
    static struct { void *initializer, *table; } late[2];
    static UINT waiting;
    State *state = state_of(table);
    if (state->late) {
        late[waiting % 2].initializer = dispatchable;
        late[waiting++ % 2].table = table;
        state->late = NULL;
        return;
    }
    int skipped = (is("aliased") && state->aliased) || (is("evicted") && evicted) ||
                  (is("interleaved") && without_barrier == commands);
    evicted = 0;
    if (skipped)
        return;
    if (is("long")) {
        void *lost = VirtualAlloc(NULL, LOST, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
        if (lost)
            memset(lost, 1, LOST);
    }
    replace(commands, RESOURCE_BARRIER, barrier_wrongly, (void **)&resource_barrier);
    if (is("repeated") && state->dispatches++ >= DISPATCHES)
        return;
    for (UINT i = 0; i < waiting && i < 2; i++) {
        D3D12_RESOURCE_BARRIER barrier = {.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV};
        record_dispatch(recorder, commands, late[i].initializer, late[i].table);
        ID3D12GraphicsCommandList_ResourceBarrier(commands, 1, &barrier);
    }
    if (waiting >= 2)
        waiting = 0;
    record_dispatch(recorder, commands, dispatchable, table);
    state->sealed = is("volatile") && is_volatile(dispatchable);
    without_barrier = commands;
}

static HRESULT WINAPI create_recorder_wrongly(void *device, const GUID *iid, void **recorder)
{
    HRESULT result = create_recorder(device, iid, recorder);
    if (SUCCEEDED(result))
        replace(*recorder, RECORD_DISPATCH, record_wrongly, (void **)&record_dispatch);
    return result;
}

static HRESULT WINAPI create_table_wrongly(
    void *device, const void *desc, const GUID *iid, void **table)
{
    HRESULT result = create_table(device, desc, iid, table);
    if (FAILED(result))
        return result;
    replace(*table, BIND_INPUTS, bind_inputs_wrongly, (void **)&bind_inputs);
    replace(*table, BIND_OUTPUTS, bind_outputs_wrongly, (void **)&bind_outputs);
    replace(*table, RESET, reset_wrongly, (void **)&reset_table);
    State *state = state_of(*table);
    memset(state, 0, sizeof *state);
    state->table = *table;
    return result;
}

static HRESULT sabotaged(HRESULT result, void *d3d, void **device)
{
    if (SUCCEEDED(result) && device && *device) {
        volatile_count = 0;
        replace(d3d, EVICT, evict_wrongly, (void **)&evict);
        replace(*device, COMPILE_OPERATOR, compile_operator_noted, (void **)&compile_operator);
        replace(*device, COMPILE_GRAPH, compile_graph_noted, (void **)&compile_graph);
        replace(*device, CREATE_COMMAND_RECORDER, create_recorder_wrongly,
                (void **)&create_recorder);
        replace(*device, CREATE_BINDING_TABLE, create_table_wrongly, (void **)&create_table);
    }
    return result;
}

static void *real_function(const char *name)
{
    static HMODULE directml;
    if (!directml)
        directml = LoadLibraryA(getenv("DMLCONF_DIRECTML"));
    return directml ? (void *)GetProcAddress(directml, name) : NULL;
}

__declspec(dllexport) HRESULT WINAPI DMLCreateDevice(
    void *device, UINT flags, const GUID *iid, void **result)
{
    CreateDevice create = (CreateDevice)real_function("DMLCreateDevice");
    return create ? sabotaged(create(device, flags, iid, result), device, result) : E_FAIL;
}

__declspec(dllexport) HRESULT WINAPI DMLCreateDevice1(
    void *device, UINT flags, UINT level, const GUID *iid, void **result)
{
    CreateDevice1 create = (CreateDevice1)real_function("DMLCreateDevice1");
    return create ? sabotaged(create(device, flags, level, iid, result), device, result) : E_FAIL;
}
