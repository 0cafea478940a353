// The page of the backend webnn: builds and runs the programs that dmlconf sends, one after another.
// Attributes have the names of WebNN's IDL. The attributes in POSITIONAL are parameters of their
// operation; the others are members of its options.
"use strict";

const POSITIONAL = {
  argMax: ["axis"],
  argMin: ["axis"],
  cast: ["type"],
  concat: ["axis"],
  cumulativeSum: ["axis"],
  expand: ["newShape"],
  gru: ["steps", "hiddenSize"],
  lstm: ["steps", "hiddenSize"],
  pad: ["beginningPadding", "endingPadding"],
  reshape: ["newShape"],
  slice: ["starts", "sizes"],
  softmax: ["axis"],
  split: ["splits"],
  tile: ["repetitions"],
};

let context = null;
let lost = null;
// The data of tensors that are sent in parts before a script, by the tensor's number.
const kept = new Map();

async function open(options) {
  context = await navigator.ml.createContext(options);
  context.lost.then((info) => {
    lost = info.message || "the context is lost";
  });
  return JSON.stringify(context.opSupportLimits());
}

function keep(place, part) {
  if (!kept.has(place)) kept.set(place, []);
  kept.get(place).push(new Uint8Array(bytes(part)));
}

function bytes(text) {
  if (typeof text === "object") return joined(kept.get(text.kept));
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text).buffer;
  const binary = atob(text);
  const array = new Uint8Array(binary.length);
  for (let index = 0; index < array.length; index++) array[index] = binary.charCodeAt(index);
  return array.buffer;
}

function joined(parts) {
  const array = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let start = 0;
  for (const part of parts) {
    array.set(part, start);
    start += part.length;
  }
  return array.buffer;
}

function text(buffer) {
  const array = new Uint8Array(buffer);
  if (array.toBase64) return array.toBase64();
  let binary = "";
  for (let start = 0; start < array.length; start += 32768) {
    binary += String.fromCharCode(...array.subarray(start, start + 32768));
  }
  return btoa(binary);
}

function number(value) {
  if (Array.isArray(value)) return value.map(number);
  if (value === null || typeof value !== "object") return value;
  return value.integer ? BigInt(value.integer) : Number(value.number);
}

function step(builder, operands, each) {
  const options = {};
  const parameters = [];
  const positional = POSITIONAL[each.operation] || [];
  for (const [name, value] of Object.entries(each.attributes)) {
    if (!positional.includes(name)) options[name] = number(value);
  }
  for (const name of positional) parameters.push(each.attributes[name]);
  for (const [name, operand] of Object.entries(each.operands)) options[name] = operands.get(operand);
  let inputs = each.inputs.map((name) => operands.get(name));
  if (each.operation === "concat") inputs = [inputs];
  const made = builder[each.operation](...inputs, ...parameters, options);
  const results = Array.isArray(made) ? made : [made];
  each.outputs.forEach((name, index) => {
    if (name) operands.set(name, results[index]);
  });
}

async function run(program) {
  let stage = "MLGraphBuilder";
  const tensors = [];
  try {
    const builder = new MLGraphBuilder(context);
    const operands = new Map();
    for (const [name, each] of Object.entries(program.inputs)) {
      operands.set(name, builder.input(name, {dataType: each.dataType, shape: each.shape}));
    }
    for (const [name, each] of Object.entries(program.constants)) {
      const desc = {dataType: each.dataType, shape: each.shape};
      operands.set(name, builder.constant(desc, bytes(each.data)));
    }
    for (const each of program.steps) {
      stage = each.operation;
      step(builder, operands, each);
    }
    const outputs = {};
    for (const name of program.outputs) outputs[name] = operands.get(name);
    stage = "build";
    const graph = await builder.build(outputs);
    stage = "dispatch";
    const read = {};
    const written = {};
    for (const [name, each] of Object.entries(program.inputs)) {
      const desc = {dataType: each.dataType, shape: each.shape, writable: true};
      written[name] = await context.createTensor(desc);
      tensors.push(written[name]);
      context.writeTensor(written[name], bytes(each.data));
    }
    for (const [name, operand] of Object.entries(outputs)) {
      const desc = {dataType: operand.dataType, shape: operand.shape, readable: true};
      read[name] = await context.createTensor(desc);
      tensors.push(read[name]);
    }
    const began = performance.now();
    context.dispatch(graph, written, read);
    const result = {};
    for (const [name, tensor] of Object.entries(read)) {
      const {dataType, shape} = outputs[name];
      result[name] = {dataType, shape, data: text(await context.readTensor(tensor))};
    }
    const seconds = (performance.now() - began) / 1000;
    graph.destroy();
    return {outputs: result, seconds};
  } catch (error) {
    // The promise of a lost context is resolved a little later than the error is thrown.
    await new Promise((resolve) => setTimeout(resolve, 0));
    return {stage, name: error.name, message: String(error.message), lost};
  } finally {
    for (const tensor of tensors) tensor.destroy();
  }
}

async function runAll(programs) {
  const results = [];
  for (const program of programs) {
    results.push(await run(program));
    if (lost !== null) break;
  }
  kept.clear();
  return results;
}
