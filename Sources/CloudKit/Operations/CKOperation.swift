public import Foundation
import Synchronization

/// What all operations have: it runs in any `OperationQueue`, or by `CKDatabase.add(_:)`, off the thread that added it.
///
/// Its blocks are called on threads of the SDK, one at a time, and may be set until it starts. Cancelling ends it with
/// `operationCancelled`, also where it never began; what it had sent may have been done. Everything can be read and set
/// from any thread.
// @unchecked: what changes lies behind locks here and in all subclasses; Operation itself is Sendable.
public class CKOperation: Operation, @unchecked Sendable {
    /// An operation's name in logs.
    public typealias ID = String

    private enum Phase { case waiting, running, ended }

    private struct Progress {
        var phase = Phase.waiting
        var task: Task<Void, Never>?
    }

    private let progress = Mutex(Progress())
    @CKGuarded private var chosenConfiguration: Configuration? = nil
    /// The operations that it belongs to.
    @CKGuarded public var group: CKOperationGroup? = nil
    /// A name that no other operation has.
    public let operationID: CKOperation.ID = UUID().uuidString

    /// How it is run: its own configuration, which begins as a copy of its group's and whose parts can be set. What is
    /// set is copied; nil goes back to that of the group, or of the database.
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

    /// The configuration that counts, if any was made.
    var effectiveConfiguration: Configuration? { chosenConfiguration ?? group?.defaultConfiguration }

    // MARK: Running

    public final override var isAsynchronous: Bool { true }
    public final override var isExecuting: Bool { progress.withLock { $0.phase == .running } }
    public final override var isFinished: Bool { progress.withLock { $0.phase == .ended } }

    /// Begins; the queue calls it. A second call does nothing.
    public final override func start() {
        willChangeValue(for: \.isExecuting)
        let isFirst = progress.withLock { progress in
            defer { if progress.phase == .waiting { progress.phase = .running } }
            return progress.phase == .waiting
        }
        didChangeValue(for: \.isExecuting)
        guard isFirst else { return }
        let task = Task {
            // Before anything is sent: the task may run before the lines below.
            if self.isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
            await self.execute()
            self.end()
        }
        progress.withLock { $0.task = task }
        if isCancelled { task.cancel() }
    }

    /// Ends it as soon as it can; the blocks that tell of its end get `operationCancelled`.
    public final override func cancel() {
        super.cancel()
        progress.withLock { $0.task }?.cancel()
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

    /// Does what the operation is for, and calls its blocks.
    func execute() async { preconditionFailure("\(type(of: self)) does nothing") }

    /// How long to go on while the cluster says to come back later; nil where nobody said.
    var patience: Duration? { effectiveConfiguration?.chosenPatience }
}

extension CKOperation {
    /// How operations are run.
    // @unchecked: its parts lie behind locks; not final, as Apple's is not.
    public class Configuration: NSObject, NSCopying, @unchecked Sendable {
        /// The container of operations that have no database; nil for the default one.
        @CKGuarded public var container: CKContainer? = nil
        /// How urgent it is.
        @CKGuarded public var qualityOfService: QualityOfService = .default
        /// Kept and shown; there is one kind of network here.
        @CKGuarded public var allowsCellularAccess = true
        /// Kept and shown; operations end with their process.
        @CKGuarded public var isLongLived = false
        /// The longest time for all of it, in seconds. Kept and shown.
        @CKGuarded public var timeoutIntervalForResource: TimeInterval = 604_800
        @CKGuarded var chosenTimeout: TimeInterval? = nil

        /// How long a request is sent again while the cluster says to come back later, in seconds; 60 where nobody
        /// says, and then the configuration's `patience` counts.
        public var timeoutIntervalForRequest: TimeInterval {
            get { chosenTimeout ?? 60 }
            set { chosenTimeout = newValue }
        }

        /// The usual values.
        public override init() { super.init() }

        public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

        /// The time that was chosen, as far as it is one: at most a year.
        var chosenPatience: Duration? {
            chosenTimeout.map { .seconds($0.isNaN ? 0 : min(max($0, 0), 31_536_000)) }
        }

        func duplicate() -> Configuration {
            let copy = Configuration()
            copy.container = container
            copy.qualityOfService = qualityOfService
            copy.allowsCellularAccess = allowsCellularAccess
            copy.isLongLived = isLongLived
            copy.timeoutIntervalForResource = timeoutIntervalForResource
            copy.chosenTimeout = chosenTimeout
            return copy
        }
    }
}
