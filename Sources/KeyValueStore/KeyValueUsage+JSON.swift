package import RecordModel

extension KeyValueUsage {
    /// Writes `keys` and `bytes` into an object.
    package func write(to writer: inout JSONWriter) {
        writer.member("keys", integer: Int64(keys))
        writer.member("bytes", integer: Int64(bytes))
    }
}
