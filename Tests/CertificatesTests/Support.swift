import Foundation
import TestSupport
import Testing

/// A folder of a test's own, removed with the value.
final class Scratch: Sendable {
    let path: String

    init() {
        path = FileManager.default.temporaryDirectory.path + "/zonekeeper-certificates-" + UUID().uuidString
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func mode(_ file: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: file.isEmpty ? path : "\(path)/\(file)")
        return try #require(attributes[.posixPermissions] as? Int)
    }

    func read(_ file: String) -> Data? { FileManager.default.contents(atPath: "\(path)/\(file)") }
}

/// Runs the system's `openssl`, the second opinion on what we write.
func openssl(_ arguments: String...) throws -> FinishedProgram { try FinishedProgram(["openssl"] + arguments) }
