import Foundation
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

/// What the system's openssl said.
struct OpenSSLAnswer {
    var status: Int32
    var text: String
}

/// Runs the system's `openssl`, the second opinion on what we write.
func openssl(_ arguments: String...) throws -> OpenSSLAnswer {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return OpenSSLAnswer(status: process.terminationStatus, text: String(decoding: output, as: UTF8.self))
}
