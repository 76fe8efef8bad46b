import Foundation

/// An operation on a database.
public class CKDatabaseOperation: CKOperation, @unchecked Sendable {
    /// The database that it runs on; nil for the private one of its configuration's container, or of the default one.
    @CKGuarded public var database: CKDatabase? = nil

    /// What it asks, in the time that is left.
    var service: DatabaseService {
        let container = effectiveConfiguration?.container ?? CKContainer.default()
        var service = (database ?? container.privateCloudDatabase).configured
        service.times = times.filled(from: service.times)
        return service.begun(at: startTime)
    }
}

extension Result where Failure == any Error {
    /// The error, if it failed.
    var failure: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }
}

extension CKError {
    /// What the older blocks get where some items failed; nil where none did.
    static func partialFailure(_ errors: [AnyHashable: any Error]) -> CKError? {
        guard !errors.isEmpty else { return nil }
        var details = CKErrorDetails()
        details.partialErrors = errors
        return CKError(
            .partialFailure, reason: "\(errors.count) of the items failed: see partialErrorsByItemID", details: details)
    }
}
