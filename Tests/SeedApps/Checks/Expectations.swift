import CloudKit

/// What a check found to be otherwise than it should.
struct CheckFailure: Error, CustomStringConvertible {
    let description: String

    init(_ what: String, line: UInt, file: String) {
        description = "\(what) (\(file.split(separator: "/").last ?? ""):\(line))"
    }
}

/// Goes on only where a condition holds.
func expect(_ condition: Bool, _ what: @autoclosure () -> String, file: String = #fileID, line: UInt = #line) throws {
    if !condition { throw CheckFailure(what(), line: line, file: file) }
}

/// Goes on only where two values are equal.
func expectEqual<Value: Equatable>(
    _ found: Value, _ expected: Value, _ what: String, file: String = #fileID, line: UInt = #line
) throws {
    if found != expected {
        throw CheckFailure("\(what): found \(found), expected \(expected)", line: line, file: file)
    }
}

/// What an optional holds; goes on only where it holds something.
func need<Value>(_ value: Value?, _ what: String, file: String = #fileID, line: UInt = #line) throws -> Value {
    guard let value else { throw CheckFailure("\(what) is missing", line: line, file: file) }
    return value
}

/// Goes on only where something fails with one of some codes; gives the error.
@discardableResult
func expectFailure<Value>(
    _ codes: CKError.Code..., of what: String, file: String = #fileID, line: UInt = #line,
    _ body: () async throws -> Value
) async throws -> CKError {
    do {
        let value = try await body()
        throw CheckFailure("\(what) should have failed, but gave \(value)", line: line, file: file)
    } catch let error as CKError where codes.contains(error.code) {
        return error
    } catch let error as CKError {
        let expected = codes.map { String($0.rawValue) }.joined(separator: " or ")
        throw CheckFailure(
            "\(what) failed with code \(error.code.rawValue) in place of \(expected): \(error)", line: line, file: file)
    }
}

/// Waits for a completion handler.
func completion<Value>(_ start: (@escaping (Value) -> Void) -> Void) async -> Value {
    await withCheckedContinuation { continuation in
        start { continuation.resume(returning: Passed(value: $0)) }
    }.value
}

/// Carries what a completion handler got to whoever waits for it. Handed over once, and not touched by the handler any
/// more.
struct Passed<Value>: @unchecked Sendable {
    let value: Value
}
