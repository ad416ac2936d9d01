// Attention in JavaScript, to be judged from outside: conformance run --backend "exec:node attention.js".
// It takes q, k, v without leading axes; docs/exec-protocol.md has the messages.
'use strict';

const HELLO = {
  versions: { node: process.versions.node },
  operations: { attention: { outputs: ['out', 'weights'], takes: ['mask', 'scale'] } },
  dtypes: ['float32'],
};
const number = (x) => (typeof x === 'number' ? x : NaN); // also for "inf" and "-inf": an infinite key has no score
const text = (x) => (Number.isFinite(x) ? x : Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf');

function attention({ q, k, v, mask }, { scale }) {
  const [T, D] = q.shape, [S, Dv] = v.shape;
  const [Q, K, V] = [q, k, v].map((array) => array.values.map(number));
  const [rows, columns] = mask ? [1, 1, ...mask.shape].slice(-2) : [1, 1];
  const visible = (i, j) => !mask || mask.values[(rows > 1 ? i * columns : 0) + (columns > 1 ? j : 0)] === 1;
  const factor = scale === undefined || scale === null ? 1 / Math.sqrt(D) : number(scale);
  const out = new Array(T * Dv).fill(0), weights = new Array(T * S).fill(0);
  for (let i = 0; i < T; i++) {
    const seen = [...Array(S).keys()].filter((j) => visible(i, j));
    const scores = seen.map((j) => Math.fround(factor * K.slice(j * D, (j + 1) * D).reduce((sum, x, d) => sum + x * Q[i * D + d], 0)));
    const top = Math.max(...scores);
    const terms = scores.map((score) => Math.exp(score - top));
    const total = terms.reduce((sum, term) => sum + term, 0);
    seen.forEach((j, place) => { weights[i * S + j] = terms[place] / total; });
    for (let f = 0; f < Dv; f++) out[i * Dv + f] = seen.reduce((sum, j) => sum + weights[i * S + j] * V[j * Dv + f], 0);
  }
  const array = (shape, values) => ({ dtype: q.dtype, shape, values: values.map(text) });
  return { out: array([T, Dv], out), weights: array([T, S], weights) };
}

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { protocol, id, op, arrays, options } = JSON.parse(line);
  let answer = { id };
  if (protocol) answer = HELLO;
  else if (['q', 'k', 'v'].some((name) => arrays[name].shape.length !== 2)) answer.unsupported = 'it has no leading axes';
  else answer.outputs = attention(arrays, options);
  console.log(JSON.stringify(answer));
});
