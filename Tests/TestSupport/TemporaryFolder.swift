import Foundation

/// A folder that is gone after the test.
package enum TemporaryFolder {
    /// Runs `body` with the folder's path.
    package static func with<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let path = FileManager.default.temporaryDirectory.path + "/zonekeeper-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }
}
