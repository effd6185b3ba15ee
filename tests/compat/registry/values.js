// Serializers of two libraries of Node: writes values of all three types of schemas, and reads those that it is given.
// Arguments: the library, the registry's URL. Standard input: {protobuf: a FileDescriptorSet in base64, and for each type
// of schemas {schema, value, topic, bytes in base64}}. Prints {type: {wrote: base64, read: value}}. See
// tests/compat/registries.py.

const [library, url] = process.argv.slice(2);
const given = JSON.parse(require("fs").readFileSync(0));
const KINDS = ["AVRO", "JSON", "PROTOBUF"];

const kafkajs = async (kind, { schema, value, topic, bytes }) => {
  const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");
  const registry = new SchemaRegistry({ host: url });
  const { id } = await registry.register({ type: kind, schema }, { subject: `${topic}-value` });
  const wrote = await registry.encode(id, value);
  return { wrote, read: await registry.decode(Buffer.from(bytes, "base64")) };
};

const confluent = async (kind, { schema, value, topic, bytes }) => {
  const sr = require("@confluentinc/schemaregistry");
  const client = new sr.SchemaRegistryClient({ baseURLs: [url] });
  const { VALUE } = sr.SerdeType;
  if (kind === "PROTOBUF") {
    const { create, createFileRegistry, createMutableRegistry, fromBinary, toJson } = require("@bufbuild/protobuf");
    const { FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");
    const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(given.protobuf, "base64")));
    const type = files.getMessage("air.Flight");
    const serializer = new sr.ProtobufSerializer(client, VALUE, { registry: createMutableRegistry(type) });
    const wrote = await serializer.serialize(topic, create(type, value));
    const read = await new sr.ProtobufDeserializer(client, VALUE, {}).deserialize(topic, Buffer.from(bytes, "base64"));
    return { wrote, read: { carrier: read.carrier, delay: read.delay } };
  }
  await client.register(`${topic}-value`, { schema, schemaType: kind });
  const [Writer, Reader] = { AVRO: [sr.AvroSerializer, sr.AvroDeserializer], JSON: [sr.JsonSerializer, sr.JsonDeserializer] }[kind];
  const wrote = await new Writer(client, VALUE, { useLatestVersion: true, validate: true }).serialize(topic, value);
  return { wrote, read: await new Reader(client, VALUE, {}).deserialize(topic, Buffer.from(bytes, "base64")) };
};

const main = async () => {
  const found = {};
  for (const kind of KINDS) {
    const { wrote, read } = await { kafkajs, confluent }[library](kind, given[kind]);
    found[kind] = { wrote: Buffer.from(wrote).toString("base64"), read };
  }
  console.log(JSON.stringify(found));
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
