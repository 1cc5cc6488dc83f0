from models_app.models.applied import AppliedObject, StateChange
from models_app.models.deployments import Deployment
from models_app.models.revisions import Revision

__all__ = ["AppliedObject", "Deployment", "Revision", "StateChange"]
