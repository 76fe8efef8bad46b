public import Foundation
import Synchronization

// @unchecked: what changes lies behind locks here and in all subclasses; Operation itself is Sendable.
/// The base of all operations. It runs in any `OperationQueue`, or by `CKDatabase.add(_:)`, off the thread that added
/// it. Its subclasses may be subclassed: one that overrides `main()` sets it up and calls `super.main()`.
///
/// Its blocks are called on threads of the SDK, one at a time, and may be set until it starts. A cancelled operation
/// ends with `operationCancelled`, even if it never began; requests already sent may have been done. All properties can
/// be read and set from any thread.
open class CKOperation: Operation, @unchecked Sendable {
    /// An operation's name in logs.
    public typealias ID = String

    private enum Phase { case waiting, running, ended }

    private struct Progress {
        var phase = Phase.waiting
        var hasCalledMain = false
        var task: Task<Void, Never>?
        var start: ContinuousClock.Instant?
    }

    private let progress = Mutex(Progress())
    @CKGuarded private var chosenConfiguration: Configuration? = nil
    /// The group that it belongs to.
    @CKGuarded public var group: CKOperationGroup? = nil
    /// A name that no other operation has.
    public var operationID: CKOperation.ID { identity }
    @CKGuarded var identity: CKOperation.ID = UUID().uuidString
    /// Called when a long-lived operation is on disk, before anything is sent: from then on
    /// `CKContainer.allLongLivedOperationIDs()` names it until it ends, also after another start of the program. It is
    /// not called where the operation could not be written, or its user is not known.
    @preconcurrency @CKGuarded public var longLivedOperationWasPersistedBlock: (@Sendable () -> Void)? = nil

    /// Its own configuration, which begins as a copy of its group's. A configuration that is set is copied; nil returns
    /// to that of the group or the database.
    public var configuration: Configuration! {
        get {
            let base = group?.defaultConfiguration
            return _chosenConfiguration.update { chosen in
                if let chosen { return chosen }
                let own = base?.duplicate() ?? Configuration()
                chosen = own
                return own
            }
        }
        set { chosenConfiguration = newValue?.duplicate() }
    }

    var effectiveConfiguration: Configuration? { chosenConfiguration ?? group?.defaultConfiguration }

    // MARK: Running

    /// Always true.
    open override var isAsynchronous: Bool { true }
    /// Whether it runs now.
    open override var isExecuting: Bool { progress.withLock { $0.phase == .running } }
    /// Whether it has ended.
    open override var isFinished: Bool { progress.withLock { $0.phase == .ended } }

    /// Begins; the queue calls it. It calls `main()`, on the thread that it is called on. A second call does nothing.
    open override func start() {
        willChangeValue(for: \.isExecuting)
        let isFirst = progress.withLock { progress in
            guard progress.phase == .waiting else { return false }
            progress.phase = .running
            progress.start = .now
            return true
        }
        didChangeValue(for: \.isExecuting)
        guard isFirst else { return }
        main()
        progress.withLock { $0.hasCalledMain = true }
        // A subclass need not begin what was cancelled, and yet it has to end.
        if isCancelled { beginWork() }
    }

    /// Begins the work, and returns before it is done. A subclass may set blocks and properties first, and call this
    /// later, too: it ends only when it was called and the work is done, or when it is cancelled.
    open override func main() { beginWork() }

    /// Ends it as soon as possible; its final blocks get `operationCancelled`.
    open override func cancel() {
        super.cancel()
        let (task, isIdle) = progress.withLock { ($0.task, $0.phase == .running && $0.hasCalledMain) }
        if let task { task.cancel() } else if isIdle { beginWork() }
    }

    /// Begins the work, once.
    private func beginWork() {
        progress.withLock { progress in
            guard progress.phase == .running, progress.task == nil else { return }
            progress.task = Task {
                // Before anything is sent: it may have been cancelled before there was a task.
                if self.isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
                await self.run()
                self.end()
            }
        }
        if isCancelled { progress.withLock { $0.task }?.cancel() }
    }

    private func end() {
        willChangeValue(for: \.isExecuting)
        willChangeValue(for: \.isFinished)
        progress.withLock { progress in
            progress.phase = .ended
            progress.task = nil
        }
        didChangeValue(for: \.isExecuting)
        didChangeValue(for: \.isFinished)
    }

    /// Does the work. Operations on databases are kept on disk meanwhile if they are long-lived.
    func run() async { await execute() }

    func execute() async { preconditionFailure("\(type(of: self)) does nothing") }

    /// Ends an operation for which the server has nothing.
    func refuse(_ refusal: CKError, _ blocks: @escaping @Sendable (CKError) -> Void) async {
        let error = isCancelled ? ErrorMapping.cancelled : refusal
        await Callbacks.run { blocks(error) }
    }

    /// What the final blocks get: what the work came to, and `operationCancelled` where the operation was cancelled
    /// meanwhile, whatever its items got.
    final func ending<Value>(of result: Result<Value, any Error>) -> Result<Value, any Error> {
        isCancelled ? .failure(ErrorMapping.cancelled) : result
    }

    /// How long it may take, if that was set.
    var times: CallTimes { CallTimes(effectiveConfiguration) }

    final var home: CKContainer { effectiveConfiguration?.container ?? CKContainer.default() }

    /// A database, with the time that is left.
    final func begun(_ database: CKDatabase) -> DatabaseService {
        var service = database.configured
        service.times = times.filled(from: service.times)
        return service.begun(at: progress.withLock { $0.start } ?? .now)
    }
}

// The older names of what is in the configuration.
extension CKOperation {
    /// See `Configuration.container`.
    @available(*, deprecated, message: "use configuration.container")
    public var container: CKContainer? {
        get { configuration.container }
        set { configuration.container = newValue }
    }

    /// See `Configuration.allowsCellularAccess`.
    @available(*, deprecated, message: "use configuration.allowsCellularAccess")
    public var allowsCellularAccess: Bool {
        get { configuration.allowsCellularAccess }
        set { configuration.allowsCellularAccess = newValue }
    }

    /// See `Configuration.isLongLived`.
    @available(*, deprecated, message: "use configuration.isLongLived")
    public var isLongLived: Bool {
        get { configuration.isLongLived }
        set { configuration.isLongLived = newValue }
    }

    /// See `Configuration.timeoutIntervalForRequest`.
    @available(*, deprecated, message: "use configuration.timeoutIntervalForRequest")
    public var timeoutIntervalForRequest: TimeInterval {
        get { configuration.timeoutIntervalForRequest }
        set { configuration.timeoutIntervalForRequest = newValue }
    }

    /// See `Configuration.timeoutIntervalForResource`.
    @available(*, deprecated, message: "use configuration.timeoutIntervalForResource")
    public var timeoutIntervalForResource: TimeInterval {
        get { configuration.timeoutIntervalForResource }
        set { configuration.timeoutIntervalForResource = newValue }
    }
}

/// An operation on a database.
open class CKDatabaseOperation: CKOperation, @unchecked Sendable {
    /// The database that it runs on; nil for the private one of its configuration's container, or of the default one.
    @CKGuarded public var database: CKDatabase? = nil

    /// What its changes are known by, however often they are sent; nil unless it is long-lived.
    @CKGuarded var longLivedKeys: LongLivedKeys? = nil
    /// Puts the receipts of its assets on disk; nil where it is not there itself.
    @CKGuarded var keepReceipts: (@Sendable (AssetReceipts) -> Void)? = nil

    /// The database, with the time that is left.
    var service: DatabaseService {
        var service = begun(database ?? home.privateCloudDatabase)
        service.keys = longLivedKeys
        service.keepReceipts = keepReceipts
        return service
    }

    override func run() async {
        let store = await keptOnDisk()
        await super.run()
        store?.remove(operationID)
    }
}

func outcome<Value>(of work: () async throws(CKError) -> Value) async -> Result<Value, any Error> {
    do throws(CKError) {
        return .success(try await work())
    } catch {
        return .failure(error)
    }
}

extension Result where Failure == any Error {
    var failure: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }
}

extension CKError {
    /// The error for the older blocks if some items failed; nil if none did.
    static func partialFailure(_ errors: [AnyHashable: any Error]) -> CKError? {
        guard !errors.isEmpty else { return nil }
        var details = CKErrorDetails()
        details.partialErrors = errors
        return CKError(
            .partialFailure, reason: "\(errors.count) of the items failed: see partialErrorsByItemID", details: details)
    }
}

/// Calls an app's blocks, on threads of the SDK that a block may hold for any time.
enum Callbacks {
    private static let queue = DispatchQueue(label: "zonekeeper.cloudkit.callbacks", attributes: .concurrent)

    /// Calls a block and comes back when it has returned.
    static func run(on queue: DispatchQueue = queue, _ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Calls the blocks of one operation one after the other, in their order: those of its progress too, which come
    /// from several transfers at once.
    struct Serial: Sendable {
        private let queue = DispatchQueue(label: "zonekeeper.cloudkit.operation", target: Callbacks.queue)

        /// Calls a block after those before it, and comes back when it has returned.
        func run(_ body: @escaping @Sendable () -> Void) async { await Callbacks.run(on: queue, body) }

        /// Calls a block after those before it.
        func post(_ body: @escaping @Sendable () -> Void) { queue.async { body() } }
    }

    /// Does work in a task of its own, and calls a completion handler with the value or the error.
    static func complete<Value: Sendable>(
        _ handler: @escaping @Sendable (Value?, (any Error)?) -> Void,
        _ work: @escaping @Sendable () async throws -> Value
    ) {
        complete({ (result: Result<Value, any Error>) in handler(try? result.get(), result.failure) }, work)
    }

    /// Does work in a task of its own, and calls a completion handler with its result.
    static func complete<Value: Sendable>(
        _ handler: @escaping @Sendable (Result<Value, any Error>) -> Void,
        _ work: @escaping @Sendable () async throws -> Value
    ) {
        Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await work())
            } catch {
                result = .failure(error)
            }
            await run { handler(result) }
        }
    }
}

/// Keeps a property of an operation behind a lock, so that any thread may read and set it.
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

    func update<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
}

extension CKOperation {
    // @unchecked: its parts lie behind locks; not final, as Apple's is not.
    /// How operations are run.
    public class Configuration: NSObject, NSCopying, @unchecked Sendable {
        /// The container of operations that have no database; nil for the default one.
        @CKGuarded public var container: CKContainer? = nil
        /// How urgent it is.
        @CKGuarded public var qualityOfService: QualityOfService = .default
        /// Kept and shown; there is one kind of network here.
        @CKGuarded public var allowsCellularAccess = true
        /// Whether operations on databases are kept on disk until they end: see
        /// `CKContainer.longLivedOperation(for:)`.
        @CKGuarded public var isLongLived = false
        @CKGuarded var chosenTimeout: TimeInterval? = nil
        @CKGuarded var chosenResourceTimeout: TimeInterval? = nil
        @CKGuarded var chosenFetchesFiles: Bool? = nil

        /// The longest time for all of an operation, or of a call, in seconds, from its start: what is not done by then
        /// fails with `networkFailure`. The default is a week, which is not measured.
        public var timeoutIntervalForResource: TimeInterval {
            get { chosenResourceTimeout ?? 604_800 }
            set { chosenResourceTimeout = newValue }
        }

        /// The longest time for one request, in seconds: for that long it is sent again while the cluster says to come
        /// back later, and a node is waited for. The default is 60; then the configuration's `patience` says how
        /// long it is sent again, and each attempt may take 30.
        public var timeoutIntervalForRequest: TimeInterval {
            get { chosenTimeout ?? 60 }
            set { chosenTimeout = newValue }
        }

        /// Whether fetched records come with the files of their assets, as they usually do. Without them an asset's
        /// `fileURL` is nil; its `size` and `downloadURL` are there. Not in CloudKit.
        public var fetchesAssetFiles: Bool {
            get { chosenFetchesFiles ?? true }
            set { chosenFetchesFiles = newValue }
        }

        /// The usual values.
        public override init() { super.init() }

        /// A copy of the object.
        public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

        func duplicate() -> Configuration {
            let copy = Configuration(content)
            copy.container = container
            return copy
        }
    }
}

extension CKOperation.Configuration {
    /// What archives and copies hold of it: all but the container.
    struct Content: Codable {
        var qualityOfService: Int
        var allowsCellularAccess: Bool
        var isLongLived: Bool
        var timeout: TimeInterval?
        var resourceTimeout: TimeInterval?
        var fetchesFiles: Bool?
    }

    var content: Content {
        Content(
            qualityOfService: qualityOfService.rawValue, allowsCellularAccess: allowsCellularAccess,
            isLongLived: isLongLived, timeout: chosenTimeout, resourceTimeout: chosenResourceTimeout,
            fetchesFiles: chosenFetchesFiles)
    }

    convenience init(_ content: Content) {
        self.init()
        qualityOfService = QualityOfService(rawValue: content.qualityOfService) ?? .default
        allowsCellularAccess = content.allowsCellularAccess
        isLongLived = content.isLongLived
        chosenTimeout = content.timeout
        chosenResourceTimeout = content.resourceTimeout
        chosenFetchesFiles = content.fetchesFiles
    }
}

// @unchecked: its parts lie behind locks; not final, as Apple's is not.
/// A group of operations that belong together, with a configuration for those that have none of their own.
public class CKOperationGroup: NSObject, NSSecureCoding, @unchecked Sendable {
    /// A name that no other group has.
    public let operationGroupID: String
    /// The app's name for it.
    @CKGuarded public var name: String? = nil
    /// How many of something it is about, as the app counts.
    @CKGuarded public var quantity: Int = 0
    /// The configuration of operations that have none of their own.
    @CKGuarded public var defaultConfiguration: CKOperation.Configuration! = CKOperation.Configuration()
    /// About how much will be sent.
    @CKGuarded public var expectedSendSize: TransferSize = .unknown
    /// About how much will be fetched.
    @CKGuarded public var expectedReceiveSize: TransferSize = .unknown

    /// A group without name.
    public override init() {
        operationGroupID = UUID().uuidString
        super.init()
    }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the group with its ID and its configuration, but not the configuration's container.
    public func encode(with coder: NSCoder) {
        coder.write(operationGroupID, "OperationGroupID")
        coder.write(name, "Name")
        coder.encode(Int64(quantity), forKey: "Quantity")
        coder.encode(Int64(expectedSendSize.rawValue), forKey: "ExpectedSendSize")
        coder.encode(Int64(expectedReceiveSize.rawValue), forKey: "ExpectedReceiveSize")
        coder.write(codable: defaultConfiguration?.content, "DefaultConfiguration")
    }

    /// The group of an archive; where that holds none, a new one.
    public required init(coder: NSCoder) {
        operationGroupID = coder.text("OperationGroupID") ?? UUID().uuidString
        super.init()
        name = coder.text("Name")
        quantity = coder.integer("Quantity")
        expectedSendSize = TransferSize(rawValue: coder.integer("ExpectedSendSize")) ?? .unknown
        expectedReceiveSize = TransferSize(rawValue: coder.integer("ExpectedReceiveSize")) ?? .unknown
        let content = coder.codable(CKOperation.Configuration.Content.self, "DefaultConfiguration")
        defaultConfiguration = content.map { CKOperation.Configuration($0) } ?? CKOperation.Configuration()
    }

    /// About how much.
    public enum TransferSize: Int, Hashable, Sendable {
        case unknown = 0
        case kilobytes = 1
        case megabytes = 2
        case tensOfMegabytes = 3
        case hundredsOfMegabytes = 4
        case gigabytes = 5
        case tensOfGigabytes = 6
        case hundredsOfGigabytes = 7
    }
}
