// Label selectors in kubectl's grammar, as `-l` of the command line reads them: app=web,tier!=db,env in (a,b),!old

const KEY = "(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?";
const VALUE = "(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?";
const SET_BASED = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);
const COMMA = /,(?![^()]*\))/;

// A function: whether labels match; throws an Error for the first part that is no requirement.
export function parse(text) {
  const requirements = text.trim() ? text.split(COMMA).map((part) => requirement(part.trim())) : [];
  return (labels) => requirements.every((one) => one(labels));
}

function requirement(part) {
  let found = SET_BASED.exec(part);
  if (found) {
    const [, key, operator, list] = found;
    const values = list.split(",").map((value) => value.trim());
    if (values.every((value) => WHOLE_VALUE.test(value))) {
      return operator === "in"
        ? (labels) => has(labels, key) && values.includes(labels[key])
        : (labels) => !has(labels, key) || !values.includes(labels[key]);
    }
  }
  found = EQUALITY.exec(part);
  if (found) {
    const [, key, operator, value] = found;
    return operator === "!="
      ? (labels) => !has(labels, key) || labels[key] !== value
      : (labels) => has(labels, key) && labels[key] === value;
  }
  found = EXISTENCE.exec(part);
  if (found) {
    const [, not, key] = found;
    return not ? (labels) => !has(labels, key) : (labels) => has(labels, key);
  }
  throw new Error(`expected requirements such as app=web, tier!=db, env in (a,b), key or !key, got '${part}'`);
}

function has(labels, key) {
  return Object.hasOwn(labels, key);
}

// What is typed is a selector if it has an operator, else part of a name.
export function isSelector(text) {
  return /[=!]|\s(in|notin)\s*\(/.test(text);
}
