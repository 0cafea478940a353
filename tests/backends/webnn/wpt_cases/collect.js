// Returns the tests of a test file as JSON, and runs none, given the texts of utils.js and of the
// file. Elements of tensors are texts, since JSON has neither NaN nor -0 nor integers of 64 bits.
(utilities, file) => {
  const text = (value) => (Object.is(value, -0) ? "-0" : String(value));
  const tensors = (named) =>
    Object.fromEntries(
      Object.entries(named).map(([name, {data, descriptor, constant}]) => [
        name,
        {
          type: descriptor.dataType,
          shape: descriptor.shape,
          constant: constant === true,
          data: typeof data === "object" ? Array.from(data, text) : text(data),
        },
      ]),
    );
  const plain = (key, value) =>
    typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))
      ? {number: text(value)}
      : value;
  const tests = [];
  const record = (build, tolerance, {name, graph}) => {
    const {inputs, operators, expectedOutputs} = graph;
    // The tensor between two operators is taken to have the sizes of the output. Where it has not,
    // the test becomes no case.
    const [output] = Object.values(expectedOutputs);
    const between = {[operators[0].outputs]: output.descriptor};
    tests.push({
      name,
      operators,
      inputs: tensors(inputs),
      outputs: tensors(expectedOutputs),
      tolerance: operators.length <= 2 ? tolerance(graph, between) : null,
    });
  };
  const nothing = () => {};
  const script = `${utilities}
    ;((webnn_conformance_test) => {${file}
    })(record);`;
  const names = ["record", "location", "promise_test", "promise_setup", "test"];
  new Function(...names, script)(record, {search: "?cpu"}, nothing, nothing, nothing);
  return JSON.stringify(tests, plain);
}
