"""Of the published Avro files that scripts/setup.sh fetches: those that are no tables, and the words in which they are refused."""

REFUSED = {
    "bool.avro": "rows are records, not boolean",
    "class org.apache.avro.tool.TestDataFileTools.seperators.avro": "rows are records, not array",
    "class org.apache.avro.tool.TestDataFileTools.testWrite.deflate.avro": "rows are records, not int",
    "class org.apache.avro.tool.TestDataFileTools.testWrite.plain.avro": "rows are records, not int",
    "class org.apache.avro.tool.TestDataFileTools.zerojsonvalues.avro": "rows are records, not int",
    "deflate.avro": "rows are records, not bytes",
    "null.avro": "rows are records, not bytes",
    "org.apache.avro.tool.TestDataFileTools.avro": "rows are records, not int",
    "recursive.avro": "column next: the record LongList contains itself",
    "response.avro": "rows are records, not string",
    "snappy.avro": "rows are records, not bytes",
    "testDataFileMeta.avro": "rows are records, not null",
}
