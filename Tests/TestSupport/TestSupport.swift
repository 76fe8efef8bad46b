/// What a test could not go on without. This target is a plain library, which has no `#require`.
package struct TestFailure: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) { self.description = description }
}

/// Ends the test where the condition does not hold.
package func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw TestFailure(message()) }
}

/// The value, which must be there.
package func require<Value>(_ value: Value?, _ message: @autoclosure () -> String) throws -> Value {
    guard let value else { throw TestFailure(message()) }
    return value
}
