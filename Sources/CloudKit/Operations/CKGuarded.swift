import Synchronization

/// How operations keep their properties: any thread may read and set one, its value lies behind a lock.
///
/// Public because the properties are; an app has no use for it.
@propertyWrapper
public final class CKGuarded<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    /// A property with its first value.
    public init(wrappedValue: Value) { value = Mutex(wrappedValue) }

    /// The value of the moment.
    public var wrappedValue: Value {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }

    /// Changes the value in one step.
    func update<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
}
